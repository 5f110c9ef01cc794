-- Claim and report: the hot path. Both walk their indexes whatever the statistics say, which in a queue are always out of
-- date; ids go through arrays, since the planner does not know how many a LIMIT of a parameter is.

-- The first of several lanes, locked; of what it does not take nothing is locked, so that others find it.
CREATE FUNCTION @schema@.pick(p_lanes integer[], p_most integer) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  v_deep integer := p_most + 20;  -- some more of each lane: others may be taking the first ones
  v_seen bigint[];
  v_ids bigint[] := '{}';
BEGIN
  LOOP
    v_seen := ARRAY(SELECT t.id FROM unnest(p_lanes) AS l(lane) CROSS JOIN LATERAL (
                      SELECT r.id, r.rank FROM @schema@.task r WHERE r.lane = l.lane AND r.state = 1
                      ORDER BY r.rank, r.id LIMIT v_deep) AS t
                    ORDER BY t.rank, t.id);
    EXIT WHEN cardinality(v_seen) = 0;
    -- One by one in this order until there are enough: nothing may sort here, or all would be locked.
    v_ids := v_ids || ARRAY(SELECT t.id FROM unnest(v_seen) AS s(id) CROSS JOIN LATERAL (
                              SELECT r.id FROM @schema@.task r WHERE r.id = s.id AND r.state + 0 = 1
                                AND r.lane + 0 = ANY (p_lanes) FOR NO KEY UPDATE SKIP LOCKED) AS t
                            WHERE s.id <> ALL (v_ids) LIMIT p_most - cardinality(v_ids));
    EXIT WHEN cardinality(v_ids) >= p_most OR cardinality(v_seen) < v_deep OR v_deep > 10000;
    v_deep := v_deep * 8;
  END LOOP;
  RETURN v_ids;
END $$;

-- The tasks that a worker gets now. In a group the highest priority first, then the lowest id; groups take turns.
-- `p_behind`: `{"LANE":[priority,id]}`, where in a lane to begin.
CREATE FUNCTION @schema@.take(p_worker bigint, p_lanes integer[], p_is_simple boolean, p_most integer, p_turns text[],
  p_closed text[],
                              p_limits json, p_behind json)
RETURNS TABLE(id bigint, fence bigint, attempt integer, agent text, grp text, on_lost smallint, priority bigint,
  retries integer,
              spared integer, body text, env text, cancelling boolean, lane integer, needs text, submitter text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_ids bigint[];
  v_rank bigint := -9223372036854775808;
  v_id bigint := 0;
BEGIN
  IF p_is_simple AND cardinality(p_lanes) = 1 THEN
    IF p_behind IS NOT NULL THEN
      v_rank := coalesce(~(p_behind -> p_lanes[1]::text ->> 0)::bigint, v_rank);
      v_id := coalesce((p_behind -> p_lanes[1]::text ->> 1)::bigint, v_id);
    END IF;
    v_ids := ARRAY(SELECT r.id FROM @schema@.task r WHERE r.lane = p_lanes[1] AND r.state = 1
                     AND (r.rank, r.id) > (v_rank, v_id)
                   ORDER BY r.rank, r.id LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED);
  ELSIF p_is_simple THEN
    v_ids := @schema@.pick(p_lanes, p_most);
  ELSE
    v_ids := @schema@.choose(p_lanes, p_most, p_turns, p_closed, p_limits, p_behind);
  END IF;
  IF cardinality(v_ids) = 0 THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH got AS (
    UPDATE @schema@.task t SET state = 2, worker = p_worker, fence = nextval('@schema@.fence'),
      attempts = t.attempts + 1,
      announced = false, retry_at = NULL, due = NULL
    WHERE t.id = ANY (v_ids) RETURNING t.id, t.fence, t.attempts, t.on_lost, t.rank, t.retries, t.spared, t.lost,
      t.lane, t.cancelling)
  SELECT g.id, g.fence, g.attempts, l.agent, l.grp, g.on_lost, ~g.rank, g.retries, g.spared + g.lost, q.body, q.env,
    g.cancelling, g.lane, l.needs, l.submitter
  FROM got g  -- OFFSET: looked up one by one, whatever the planner believes of how many there are
  CROSS JOIN LATERAL (SELECT o.body, o.env FROM @schema@.request o WHERE o.task = g.id OFFSET 0) q
  CROSS JOIN LATERAL (SELECT o.agent, o.grp, array_to_string(o.needs, E'\x1f') AS needs, o.submitter
      FROM @schema@.lane o WHERE o.id = g.lane OFFSET 0) l;
END $$;

-- Those of these lanes that have a ready task and that nothing closes now.
CREATE FUNCTION @schema@.open_lanes(p_lanes integer[], p_closed text[], p_behind json) RETURNS integer[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  IF EXISTS (SELECT FROM @schema@.gate g WHERE g.kind = 'queue' AND g.paused) THEN
    RETURN '{}';
  END IF;
  -- LIMIT: an EXISTS may become a join that reads and hashes all ready tasks.
  RETURN ARRAY(SELECT l.id FROM @schema@.lane l
  CROSS JOIN LATERAL (
    SELECT FROM @schema@.task r WHERE r.lane = l.id AND r.state = 1
      AND (r.rank, r.id) > (coalesce(~(p_behind -> l.id::text ->> 0)::bigint, -9223372036854775808),
                            coalesce((p_behind -> l.id::text ->> 1)::bigint, 0))
    ORDER BY r.rank, r.id LIMIT 1) r
  WHERE l.id = ANY (p_lanes)
    AND NOT coalesce((SELECT g.paused FROM @schema@.gate g WHERE g.kind = 'group' AND g.name = l.grp),
      l.grp = ANY (p_closed), false)
    AND NOT EXISTS (SELECT FROM @schema@.gate g WHERE g.kind = 'agent' AND g.name = l.agent AND g.held_until > v_now));
END $$;

-- The same where pauses, holds, limits or several groups have a say. Locks what it chooses.
CREATE FUNCTION @schema@.choose(p_lanes integer[], p_most integer, p_turns text[], p_closed text[], p_limits json,
  p_behind json)
RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_lanes integer[];
  v_ids bigint[] := '{}';
  v_kinds text[];   -- what has a limit, and how many more of it may run
  v_names text[];
  v_rooms bigint[];
  v_of_group integer;
  v_of_agent integer;
  v_deep integer := p_most + 20;  -- as in pick()
  v_is_cut boolean;
  c record;
BEGIN
  v_lanes := @schema@.open_lanes(p_lanes, p_closed, p_behind);
  IF cardinality(v_lanes) = 0 THEN
    RETURN v_ids;
  END IF;
  IF p_limits IS NOT NULL THEN
    SELECT array_agg(x.kind ORDER BY x.kind, x.name), array_agg(x.name ORDER BY x.kind, x.name) INTO v_kinds, v_names
    FROM (SELECT 'agent' AS kind, a.key AS name FROM json_each_text(p_limits -> 'agents') a
            WHERE a.key IN (SELECT l.agent FROM @schema@.lane l WHERE l.id = ANY (v_lanes))
          UNION ALL SELECT 'group', g.key FROM json_each_text(p_limits -> 'groups') g
            WHERE g.key IN (SELECT l.grp FROM @schema@.lane l WHERE l.id = ANY (v_lanes))) x;
  END IF;
  IF v_kinds IS NOT NULL THEN
    -- Two workers together must not go beyond a limit: one after the other. The count comes after the lock.
    INSERT INTO @schema@.gate(kind, name) SELECT u.kind, u.name FROM unnest(v_kinds, v_names) AS u(kind, name)
      ON CONFLICT DO NOTHING;
    FOR i IN 1..cardinality(v_kinds) LOOP
      PERFORM FROM @schema@.gate g WHERE g.kind = v_kinds[i] AND g.name = v_names[i] FOR NO KEY UPDATE;
    END LOOP;
    v_lanes := @schema@.open_lanes(v_lanes, p_closed, p_behind);  -- somebody may have closed one while this waited
    v_rooms := ARRAY(
      SELECT (CASE WHEN u.kind = 'agent' THEN p_limits -> 'agents' ->> u.name
        ELSE p_limits -> 'groups' ->> u.name END)::bigint
        - (SELECT count(*) FROM @schema@.task t JOIN @schema@.lane l ON l.id = t.lane
           WHERE t.state = 2 AND CASE WHEN u.kind = 'agent' THEN l.agent ELSE l.grp END = u.name)
      FROM unnest(v_kinds, v_names) WITH ORDINALITY AS u(kind, name, place) ORDER BY u.place);
  END IF;
  LOOP
    v_is_cut := false;
    FOR c IN
      SELECT x.id, x.lane, x.grp, x.agent, x.depth FROM (
        SELECT t.id, t.rank, t.depth, l.id AS lane, l.grp, l.agent, row_number() OVER (PARTITION BY l.grp ORDER BY t.rank, t.id) AS turn,
          coalesce(array_position(p_turns, l.grp), 0) AS place
        FROM @schema@.lane l CROSS JOIN LATERAL (
          SELECT o.id, o.rank, row_number() OVER () AS depth FROM (
            SELECT r.id, r.rank FROM @schema@.task r WHERE r.lane = l.id AND r.state = 1
              AND (r.rank, r.id) > (coalesce(~(p_behind -> l.id::text ->> 0)::bigint, -9223372036854775808),
                                    coalesce((p_behind -> l.id::text ->> 1)::bigint, 0))
            ORDER BY r.rank, r.id LIMIT v_deep) o) t
        WHERE l.id = ANY (v_lanes)) x
      ORDER BY x.turn, x.place, x.rank, x.id
    LOOP
      EXIT WHEN cardinality(v_ids) >= p_most;
      v_of_group := NULL;
      v_of_agent := NULL;
      FOR i IN 1..coalesce(cardinality(v_kinds), 0) LOOP
        IF v_kinds[i] = 'group' AND v_names[i] = c.grp THEN
          v_of_group := i;
        ELSIF v_kinds[i] = 'agent' AND v_names[i] = c.agent THEN
          v_of_agent := i;
        END IF;
      END LOOP;
      CONTINUE WHEN v_rooms[v_of_group] <= 0 OR v_rooms[v_of_agent] <= 0;
      v_is_cut := v_is_cut OR c.depth = v_deep;
      CONTINUE WHEN c.id = ANY (v_ids);
      PERFORM FROM @schema@.task t WHERE t.id = c.id AND t.state + 0 = 1 AND t.lane + 0 = c.lane  -- by its key, not the lane's index
        FOR NO KEY UPDATE SKIP LOCKED;
      CONTINUE WHEN NOT FOUND;
      v_ids := v_ids || c.id;
      IF v_of_group IS NOT NULL THEN
        v_rooms[v_of_group] := v_rooms[v_of_group] - 1;
      END IF;
      IF v_of_agent IS NOT NULL THEN
        v_rooms[v_of_agent] := v_rooms[v_of_agent] - 1;
      END IF;
    END LOOP;
    EXIT WHEN cardinality(v_ids) >= p_most OR NOT v_is_cut OR v_deep > 10000;
    v_deep := v_deep * 8;
  END LOOP;
  RETURN v_ids;
END $$;

-- What a worker may take from: its lanes and whether nothing but order decides. No lanes: it may not claim at all.
CREATE FUNCTION @schema@.stand(p_worker bigint, p_incarnation uuid, p_closed text[], p_limits json, p_behind json,
                               OUT lanes integer[], OUT is_simple boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_state smallint;
  v_recovers boolean;
  v_newer boolean;
BEGIN
  SELECT w.state, w.recovering, w.lanes, EXISTS (SELECT FROM @schema@.lane l WHERE l.id > w.lanes_to),
    w.groups = 1 AND NOT EXISTS (SELECT FROM @schema@.gate g WHERE g.paused IS NOT NULL OR g.held_until IS NOT NULL)
  INTO v_state, v_recovers, lanes, v_newer, is_simple
  FROM @schema@.worker w WHERE w.id = p_worker AND w.incarnation = p_incarnation AND w.state <> 3;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  END IF;
  IF v_state <> 0 OR (v_recovers AND EXISTS (SELECT FROM @schema@.meta m
    WHERE m.recovering_until > clock_timestamp())) THEN
    lanes := '{}';
    RETURN;
  END IF;
  IF v_newer THEN
    lanes := lanes || ARRAY(SELECT l.id FROM @schema@.worker w JOIN @schema@.lane l ON l.id > w.lanes_to
                            WHERE w.id = p_worker AND l.retired_at IS NULL AND @schema@.serves(l, w));
    is_simple := false;
  END IF;
  is_simple := is_simple AND (p_behind IS NULL OR cardinality(lanes) = 1) AND coalesce(cardinality(p_closed), 0) = 0
    AND coalesce(p_limits::text, '{}') IN ('{}', '{"groups":{},"agents":{}}');
END $$;

-- A report without anything but a claim.
CREATE FUNCTION @schema@.claim_v1(p_worker bigint, p_incarnation uuid, p_most integer, p_turns text[], p_closed text[],
  p_limits json, p_behind json DEFAULT NULL)
RETURNS TABLE(id bigint, fence bigint, attempt integer, agent text, grp text, on_lost smallint, priority bigint,
  retries integer, spared integer, body text, env text, cancelling boolean, lane integer, needs text, submitter text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT r.id, r.fence, r.attempt, r.agent, r.grp, r.on_lost, r.priority, r.retries, r.spared, r.body, r.env,
    r.cancelling, r.lane, r.needs, r.submitter
  FROM @schema@.report_v1(p_worker, p_incarnation, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p_most, p_turns, p_closed, p_limits, p_behind) r WHERE r.what = 'claim';
END $$;
