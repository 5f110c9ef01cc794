-- The queue of one project: roles, tables, indexes. `@schema@` stands for the schema's name. The files of one number are
-- run in order of their names, in one transaction, by whoever may make roles and schemas.

DO $$
DECLARE
  v_name text;
BEGIN
  FOREACH v_name IN ARRAY ARRAY['owner', 'worker', 'client', 'watcher', 'admin'] LOOP
    v_name := '@schema@_' || v_name;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = v_name) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', v_name);
      -- They count for who logs in as such a role. A login role that is only a member of it needs the same three lines:
      -- PostgreSQL hands no settings on. Waits for locks are bounded by the functions themselves.
      EXECUTE format('ALTER ROLE %I SET statement_timeout = ''30s''', v_name);
      EXECUTE format('ALTER ROLE %I SET lock_timeout = ''5s''', v_name);
      EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''10s''', v_name);
    END IF;
  END LOOP;
  IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
    BEGIN  -- since PostgreSQL 16 who has made a role is a member that cannot become it
      EXECUTE format('GRANT %I TO %I', '@schema@_owner', current_user);
    EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN NULL;
    END;
  END IF;
  BEGIN  -- so that `cluster status` knows of old transactions and standbys; it does without if that may not be granted
    EXECUTE format('GRANT pg_read_all_stats TO %I', '@schema@_owner');
  EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN NULL;
  END;
END $$;

CREATE SCHEMA @schema@ AUTHORIZATION @schema@_owner;
REVOKE ALL ON SCHEMA @schema@ FROM PUBLIC;
SET LOCAL ROLE @schema@_owner;

CREATE SEQUENCE @schema@.task_id;
CREATE SEQUENCE @schema@.fence;
CREATE SEQUENCE @schema@.event_id;

-- One row. Counts of tasks, and of bytes that ended ones have stored, are as old as the newest number of an event.
CREATE TABLE @schema@.meta(
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  oldest integer NOT NULL,               -- the least protocol that is served
  project text NOT NULL,
  queue uuid NOT NULL,
  system bigint NOT NULL,                -- the server's identifier
  database oid NOT NULL,
  home oid NOT NULL,                     -- of this table: a copy has another one, or another database or server
  timeline integer NOT NULL,             -- the highest one seen
  epoch text NOT NULL,
  epoch_start bigint NOT NULL DEFAULT 1, -- the first number of this epoch
  recovering_until timestamptz,          -- after a failover nobody claims before that
  renewed_at timestamptz,                -- the last failover
  renewed_fence bigint NOT NULL DEFAULT 0,   -- up to this one fences were given before it
  next_seq bigint NOT NULL DEFAULT 1,
  newest_event_at timestamptz,           -- of those that have a number
  low_event bigint NOT NULL DEFAULT 0,   -- up to this id every event has its number, or will never come
  seen_event bigint NOT NULL DEFAULT 0,  -- the highest id that has a number
  mark_event bigint NOT NULL DEFAULT 0,  -- becomes low_event when all transactions before mark_xid are over
  mark_xid xid8,
  queued bigint NOT NULL DEFAULT 0,
  running bigint NOT NULL DEFAULT 0,
  completed bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  stored bigint NOT NULL DEFAULT 0,      -- bytes of output that ended tasks have
  queue_capacity bigint NOT NULL DEFAULT 10000,
  keep_days bigint NOT NULL DEFAULT 30,
  keep_tasks bigint NOT NULL DEFAULT 10000,
  keep_output bigint NOT NULL DEFAULT 2147483648
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- A daemon that has come to the queue. States: 0 live, 1 draining, 2 silent, 3 gone.
CREATE TABLE @schema@.worker(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  incarnation uuid NOT NULL,             -- no function returns it
  machine text NOT NULL,
  beat bigint NOT NULL DEFAULT 1,
  beat_at timestamptz NOT NULL,          -- for people: nothing is judged by it
  state smallint NOT NULL DEFAULT 0,
  draining boolean NOT NULL DEFAULT false,
  has_left boolean NOT NULL DEFAULT false,    -- what it had not begun never began
  recovering boolean NOT NULL DEFAULT false,  -- look at meta.recovering_until before a claim
  told_timeline integer NOT NULL,        -- what it runs was told again on this one
  silent_beat bigint,
  gone_at timestamptz,
  lease_ms bigint NOT NULL,
  lost_after_ms bigint NOT NULL,
  slots integer NOT NULL,
  runs boolean NOT NULL,
  labels text[] NOT NULL,                -- with its name
  accepts text[] NOT NULL,
  agents text[] NOT NULL,
  lanes integer[] NOT NULL DEFAULT '{}', -- that it serves, of those up to lanes_to
  lanes_to integer NOT NULL DEFAULT 0,
  groups integer NOT NULL DEFAULT 0,     -- how many different ones these lanes have
  version text NOT NULL,
  protocol integer NOT NULL,
  login text NOT NULL
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 50);
CREATE UNIQUE INDEX worker_name ON @schema@.worker(name) WHERE state <> 3;

-- Who waits for tasks. Not in the rows of workers: whoever wakes somebody must not pass by one that beats just now.
CREATE TABLE @schema@.waiter(worker bigint PRIMARY KEY, waits boolean NOT NULL)
  WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- Tasks with the same agent, group and needed labels, and the same submitter if only that one may run them.
CREATE TABLE @schema@.lane(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent text NOT NULL,
  grp text NOT NULL,
  needs text[] NOT NULL,
  submitter text NOT NULL DEFAULT '',    -- a worker's name; empty: whoever accepts the agent
  agent_json text NOT NULL,              -- for params of events
  retired_at timestamptz                 -- nobody looks there any more: whoever asks for the same gets a new lane
);
CREATE UNIQUE INDEX lane_of ON @schema@.lane(agent, grp, needs, submitter) WHERE retired_at IS NULL;
CREATE INDEX lane_live ON @schema@.lane(id) WHERE retired_at IS NULL;
CREATE INDEX lane_retired ON @schema@.lane(retired_at) WHERE retired_at IS NOT NULL;

-- One row a task, the truth of it, and no wider than what changes: every claim and every end writes it anew.
-- States: 0 waiting, 1 ready, 2 running, 3 completed, 4 failed, 5 cancelled.
CREATE TABLE @schema@.task(
  id bigint PRIMARY KEY,
  fence bigint,
  rank bigint NOT NULL,                  -- ~priority, so that all of an index rises
  worker bigint,                         -- of the last attempt
  created_at timestamptz NOT NULL,
  lane integer NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  spared integer NOT NULL DEFAULT 0,
  lost integer NOT NULL DEFAULT 0,
  retries integer NOT NULL,
  open_after integer NOT NULL DEFAULT 0, -- tasks that it still waits for
  state smallint NOT NULL,
  on_lost smallint NOT NULL,             -- 0 fail, 1 retry
  cancelling boolean NOT NULL DEFAULT false,
  announced boolean NOT NULL DEFAULT false,  -- the start of this attempt was told
  held boolean NOT NULL DEFAULT false,
  has_env boolean NOT NULL DEFAULT false,
  has_after boolean NOT NULL DEFAULT false,
  has_dependents boolean NOT NULL DEFAULT false,
  output_gone boolean NOT NULL DEFAULT false,
  error_reason smallint,
  pid integer,
  exit_code integer,
  started_at timestamptz,
  completed_at timestamptz,
  not_before timestamptz,
  retry_at timestamptz,
  due timestamptz,                       -- of a waiting one: the later of these two
  cpu_us bigint,
  max_memory bigint,
  output_bytes bigint,
  stored bigint NOT NULL DEFAULT 0,      -- bytes of its output in the database, counted when it ends
  signal text,
  error_message text,
  late text                              -- the end that came too late, JSON
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.1);
CREATE INDEX task_ready ON @schema@.task(lane, rank, id) WHERE state = 1;
CREATE INDEX task_wait ON @schema@.task(lane, open_after, held, due) WHERE state = 0;
CREATE INDEX task_run ON @schema@.task(worker) WHERE state = 2;
CREATE INDEX task_end ON @schema@.task(completed_at, id) WHERE state >= 3;
CREATE INDEX task_bad_end ON @schema@.task(id) WHERE state >= 4;
CREATE INDEX task_output ON @schema@.task(completed_at, id) WHERE state >= 3 AND stored > 0;

-- What was asked, written once. All JSON is text: jsonb refuses U+0000.
CREATE TABLE @schema@.request(
  task bigint PRIMARY KEY,
  ident uuid NOT NULL,                   -- the submit's id, or a hash of its key: whoever repeats one finds its task
  touched integer NOT NULL DEFAULT 0,
  key text,
  submitted_by text NOT NULL,
  prompt text NOT NULL,                  -- its beginning, a JSON string
  labels text,
  metadata text NOT NULL,
  env text,                              -- erased when the task has ended
  body text NOT NULL,
  key_body text                          -- what the key stands for, if the task was edited since
) WITH (fillfactor = 95, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX request_ident ON @schema@.request(ident);
CREATE INDEX request_of_rules ON @schema@.request(task) WHERE metadata LIKE '%"automation"%';

CREATE TABLE @schema@.result(task bigint PRIMARY KEY, bytes bytea NOT NULL);

CREATE TABLE @schema@.after(
  task bigint NOT NULL,
  dependency bigint NOT NULL,
  open boolean NOT NULL,                 -- the dependency has not succeeded yet
  PRIMARY KEY (task, dependency)
);
CREATE INDEX after_dependency ON @schema@.after(dependency);

CREATE TABLE @schema@.output(
  task bigint NOT NULL,
  attempt integer NOT NULL,
  start bigint NOT NULL,                 -- inside the attempt
  bytes bytea NOT NULL,
  marks text,
  PRIMARY KEY (task, attempt, start)
) WITH (autovacuum_vacuum_cost_delay = 0);
ALTER TABLE @schema@.output ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE @schema@.output_state(
  task bigint NOT NULL,
  attempt integer NOT NULL,
  total bigint NOT NULL,
  dropped text NOT NULL DEFAULT '[]',
  last boolean NOT NULL DEFAULT false,
  PRIMARY KEY (task, attempt)
) WITH (fillfactor = 70);

-- Written with the change that it tells of; `seq` is given after the commit. `was` and `becomes` are states as the world
-- sees them, `deltas` the same for many tasks: they go into the counts together with the number.
CREATE TABLE @schema@.event(
  id bigint NOT NULL,
  seq bigint,
  task bigint NOT NULL,
  at timestamptz NOT NULL,
  arrived_ms bigint,
  stored bigint,
  was smallint,
  becomes smallint,
  kind text NOT NULL,
  params text NOT NULL,
  deltas bigint[]
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX event_new ON @schema@.event(id) WHERE seq IS NULL;
CREATE UNIQUE INDEX event_seq ON @schema@.event(seq) WHERE seq IS NOT NULL;

-- What keeps tasks from starting that are ready: kind `queue` (name ''), `group`, `agent`. And what lets edits and sweeps go
-- one at a time: `edit`, `sweep`.
CREATE TABLE @schema@.gate(
  kind text NOT NULL,
  name text NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  paused boolean,                        -- NULL: nobody has said anything
  held_until timestamptz,
  held_since timestamptz,
  held_task bigint,
  held_text text,
  PRIMARY KEY (kind, name)
);
CREATE INDEX gate_said ON @schema@.gate(kind) WHERE paused IS NOT NULL OR held_until IS NOT NULL;

CREATE TABLE @schema@.handle(task bigint PRIMARY KEY, handle text NOT NULL UNIQUE);

-- How far a worker has told its own events. Not in its row: a beat must never wait for what waits for a standby.
CREATE TABLE @schema@.told(worker bigint PRIMARY KEY, number bigint NOT NULL);
