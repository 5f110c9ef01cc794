-- The floor: a table and SKIP LOCKED, the least that a durable queue in PostgreSQL can be. It has no keys, fences, events or
-- results, and nobody can ask it anything.
DROP SCHEMA IF EXISTS floor CASCADE;
CREATE SCHEMA floor;
CREATE TABLE floor.task(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  state smallint NOT NULL DEFAULT 1,  -- 1 ready, 2 taken, 3 ended
  priority bigint NOT NULL DEFAULT 0,
  body text NOT NULL
);
CREATE INDEX task_ready ON floor.task(priority DESC, id) WHERE state = 1;
