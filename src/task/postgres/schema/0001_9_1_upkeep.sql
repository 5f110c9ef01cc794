-- What any daemon does for all: numbering, retention.

-- Gives numbers to events whose transactions have been committed, one numbering at a time. `low_event` spares it the rows
-- that have a number, which stay in the index while somebody has an old snapshot. It moves only to what no transaction can
-- fill in any more: every event's transaction had its xid before the event its id, so all with an id up to `seen_event` of
-- the last call are over when all before the xid of this call are.
CREATE FUNCTION @schema@.number_v1(p_most integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
DECLARE
  m @schema@.meta;
  v_xmin xid8;
  r record;
BEGIN
  IF pg_current_xact_id_if_assigned() IS NOT NULL THEN  -- the mark below counts on it
    RAISE EXCEPTION 'number_v1 is a transaction of its own' USING ERRCODE = '25001';
  END IF;
  -- On disk here, and waiting for no standby: others could not be woken meanwhile, and a failover makes a new epoch.
  PERFORM set_config('synchronous_commit', 'local', true);
  PERFORM FROM @schema@.meta o CROSS JOIN LATERAL (SELECT FROM @schema@.event e WHERE e.seq IS NULL
    AND e.id > o.low_event LIMIT 1) e;
  IF NOT FOUND THEN
    RETURN 0;  -- what commits from now on is somebody else's
  END IF;
  SELECT * INTO m FROM @schema@.meta FOR UPDATE;
  IF m.timeline IS DISTINCT FROM @schema@.server_timeline() THEN
    PERFORM @schema@.refuse_new_server();
  END IF;
  WITH fresh AS MATERIALIZED (
    SELECT f.id, row_number() OVER () - 1 AS place
    FROM (SELECT e.id FROM @schema@.event e WHERE e.seq IS NULL AND e.id > m.low_event ORDER BY e.id LIMIT p_most) f),
  done AS (
    UPDATE @schema@.event e SET seq = m.next_seq + f.place FROM fresh f WHERE e.id = f.id AND e.seq IS NULL AND e.id > m.low_event
    RETURNING e.id, e.at, e.was, e.becomes, e.deltas, e.stored)
  SELECT count(*) AS many, max(d.id) AS newest, max(d.at) AS at, coalesce(sum(d.stored), 0) AS stored,
    count(*) FILTER (WHERE d.becomes = 0) - count(*) FILTER (WHERE d.was = 0) + coalesce(sum(d.deltas[1]), 0) AS queued,
    count(*) FILTER (WHERE d.becomes = 1) - count(*) FILTER (WHERE d.was = 1) + coalesce(sum(d.deltas[2]),
      0) AS running,
    count(*) FILTER (WHERE d.becomes = 2) - count(*) FILTER (WHERE d.was = 2) + coalesce(sum(d.deltas[3]),
      0) AS completed,
    count(*) FILTER (WHERE d.becomes = 3) - count(*) FILTER (WHERE d.was = 3) + coalesce(sum(d.deltas[4]), 0) AS failed,
    count(*) FILTER (WHERE d.becomes = 4) - count(*) FILTER (WHERE d.was = 4) + coalesce(sum(d.deltas[5]),
      0) AS cancelled,
    pg_snapshot_xmin(pg_current_snapshot()) AS xmin INTO r FROM done d;
  IF r.many = 0 THEN
    RETURN 0;
  END IF;
  v_xmin := r.xmin;
  UPDATE @schema@.meta o SET next_seq = o.next_seq + r.many, newest_event_at = greatest(o.newest_event_at, r.at),
    queued = o.queued + r.queued,
    running = o.running + r.running, completed = o.completed + r.completed, failed = o.failed + r.failed,
    cancelled = o.cancelled + r.cancelled, stored = o.stored + r.stored, seen_event = greatest(o.seen_event, r.newest),
    low_event = CASE WHEN o.mark_xid <= v_xmin THEN greatest(o.low_event, least(o.mark_event, r.newest))
      ELSE o.low_event END,
    mark_event = CASE WHEN o.mark_xid IS NULL OR o.mark_xid <= v_xmin THEN o.seen_event ELSE o.mark_event END,
    mark_xid = CASE WHEN o.mark_xid IS NULL OR o.mark_xid <= v_xmin THEN pg_current_xact_id() ELSE o.mark_xid END;
  PERFORM pg_notify('@schema@_events', '');
  RETURN r.many;
END $$;

-- A little of everything that time brings; more calls do more. Harmless if two do it. Rows may be locked for as long as a
-- standby is missing, and beats come behind this: what is locked is left to a later one.
CREATE FUNCTION @schema@.sweep_v1(p_worker bigint, p_incarnation uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' SET jit = off
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_moved integer[];  -- the lanes of ready tasks
  v_leaving bigint;
  v_lanes integer[];
  v_left integer[];
  v_removed integer;
  v_freed integer;
  v_events bigint;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'local', true), @schema@.wait_for_nobody();
  SELECT l.ready, l.moved INTO v_moved, v_leaving FROM @schema@.leave_retired_lanes() l;  -- first: they may be due
  IF v_leaving > 0 THEN  -- whoever makes a lane may wait for this: the rest is for the next sweep, right behind it
    RETURN concat('{"ready":', @schema@.counted(v_moved), ',"removed":0,"events":0,"more":true,"nextDueMs":-1}');
  END IF;
  v_lanes := @schema@.make_ready(v_now);
  PERFORM @schema@.end_holds(v_now);
  SELECT l.removed, l.freed INTO v_removed, v_freed FROM @schema@.let_go(v_now) l;
  v_events := @schema@.trim_events(v_now);
  v_left := @schema@.tidy_workers(v_now);
  PERFORM @schema@.tidy_lanes(v_now);  -- last: whoever makes a lane waits for it
  RETURN concat('{"ready":', @schema@.counted(v_lanes || v_left), ',"removed":', v_removed, ',"events":', v_events, ',"more":',
    to_json(cardinality(v_lanes) = 1000 OR v_removed >= 100 OR v_freed >= 100 OR v_events >= 1000), ',"nextDueMs":',
      coalesce(@schema@.next_due(v_now), -1), '}');
END $$;

-- Tasks whose delay or pause is over. By lane, as their index has them: most waiting tasks wait for something else.
CREATE FUNCTION @schema@.make_ready(p_now timestamptz) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
  v_lanes integer[];
  v_due bigint[] := ARRAY(
    SELECT t.id FROM @schema@.lane l CROSS JOIN LATERAL (
      SELECT o.id, o.due FROM @schema@.task o WHERE o.lane = l.id AND o.state = 0 AND o.open_after = 0 AND NOT o.held
        AND o.due <= p_now ORDER BY o.due LIMIT 1000) t
    WHERE l.retired_at IS NULL ORDER BY t.due LIMIT 1000);
BEGIN
  v_due := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_due) AND t.state + 0 = 0 AND t.open_after = 0
    AND NOT t.held AND t.due <= p_now ORDER BY t.id FOR NO KEY UPDATE SKIP LOCKED);
  WITH ready AS (UPDATE @schema@.task t SET state = 1 WHERE t.id = ANY (v_due) RETURNING t.lane)
  SELECT coalesce(array_agg(r.lane), '{}') INTO v_lanes FROM ready r;
  RETURN v_lanes;
END $$;

CREATE FUNCTION @schema@.next_due(p_now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT @schema@.ms(min(t.due)) - @schema@.ms(p_now) FROM @schema@.lane l CROSS JOIN LATERAL (
    SELECT o.due FROM @schema@.task o WHERE o.lane = l.id AND o.state = 0 AND o.open_after = 0 AND NOT o.held
      AND o.due > p_now ORDER BY o.due LIMIT 1) t
    WHERE l.retired_at IS NULL);
END $$;

-- Agents that have been held for long enough, and the time after a failover in which nobody claims.
CREATE FUNCTION @schema@.end_holds(p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  g record;
BEGIN
  FOR g IN SELECT o.name FROM @schema@.gate o WHERE o.kind = 'agent' AND o.held_until <= p_now ORDER BY o.name
    FOR NO KEY UPDATE SKIP LOCKED LOOP
    PERFORM @schema@.release_agent(g.name, 'time');
  END LOOP;
  IF EXISTS (SELECT FROM @schema@.meta m WHERE m.recovering_until <= p_now) THEN
    PERFORM @schema@.recovered();
  END IF;
EXCEPTION WHEN lock_not_available THEN NULL;
END $$;

-- How many ended tasks, and how many bytes of their output, are too many. With what the events that have no number yet will
-- change in the counts: a sweep follows a sweep before that.
CREATE FUNCTION @schema@.surplus(OUT tasks bigint, OUT output bigint) LANGUAGE plpgsql AS $$
BEGIN
  SELECT m.completed + m.failed + m.cancelled + n.ended - m.keep_tasks, m.stored + n.stored - m.keep_output
  INTO tasks, output FROM @schema@.meta m CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE e.becomes >= 2) - count(*) FILTER (WHERE e.was >= 2)
        + coalesce(sum(e.deltas[3] + e.deltas[4] + e.deltas[5]), 0) AS ended, coalesce(sum(e.stored), 0) AS stored
    FROM @schema@.event e WHERE e.seq IS NULL AND e.id > m.low_event) n;
END $$;

-- One at a time lets go of what is too much, or two would each remove that. No advisory lock: anybody may hold one.
-- `freed`: tasks that have lost their output.
CREATE FUNCTION @schema@.let_go(p_now timestamptz, OUT removed integer, OUT freed integer) LANGUAGE plpgsql AS $$
DECLARE
  v_may boolean := false;
  s record;
BEGIN
  freed := 0;
  SELECT * INTO s FROM @schema@.surplus();
  IF s.tasks > 0 OR s.output > 0 THEN
    PERFORM FROM @schema@.gate g WHERE g.kind = 'sweep' FOR NO KEY UPDATE SKIP LOCKED;
    v_may := FOUND;
    SELECT * INTO s FROM @schema@.surplus();
  END IF;
  SELECT @schema@.let_go_of_tasks(CASE WHEN v_may THEN s.tasks ELSE 0 END, m.keep_days, p_now) INTO removed
  FROM @schema@.meta m;
  IF v_may THEN
    SELECT @schema@.let_go_of_output(n.output) INTO freed FROM @schema@.surplus() n;
  END IF;
EXCEPTION WHEN lock_not_available THEN
  removed := 0;
  freed := 0;
END $$;

-- Ended tasks beyond keep_tasks and keep_days, those that ended first; not one that another comes after, nor one whose handle
-- was promised for a day.
CREATE FUNCTION @schema@.let_go_of_tasks(p_too_many bigint, p_keep_days bigint, p_now timestamptz) RETURNS integer
  LANGUAGE plpgsql AS $$
DECLARE
  v_old bigint[];
BEGIN
  v_old := ARRAY(
    SELECT t.id FROM (
      SELECT o.id, o.has_dependents, o.completed_at FROM @schema@.task o WHERE o.state >= 3
        AND o.completed_at < CASE WHEN p_too_many > 0 THEN 'infinity'::timestamptz
          ELSE p_now - p_keep_days * interval '1 day' END
        AND (NOT o.has_dependents OR @schema@.needed_by(o.id) IS NULL)
      ORDER BY o.completed_at, o.id LIMIT 600) t
    WHERE (NOT t.has_dependents OR @schema@.needed_by(t.id) IS NULL)
      AND (t.completed_at < p_now - interval '1 day' OR NOT EXISTS (SELECT FROM @schema@.handle h WHERE h.task = t.id))
    ORDER BY t.completed_at, t.id LIMIT CASE WHEN p_too_many > 0 THEN least(p_too_many, 100) ELSE 100 END);
  v_old := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_old) ORDER BY t.id FOR UPDATE SKIP LOCKED);
  -- Whoever submits it once more has its request locked.
  v_old := ARRAY(SELECT r.task FROM @schema@.request r WHERE r.task = ANY (v_old) ORDER BY r.task FOR UPDATE SKIP LOCKED);
  v_old := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_old) AND t.state > 2
    AND (NOT t.has_dependents OR @schema@.needed_by(t.id) IS NULL));
  IF cardinality(v_old) > 0 THEN
    PERFORM @schema@.erase(v_old, 'retention');
  END IF;
  RETURN cardinality(v_old);
END $$;

-- Output beyond keep_output: that of tasks that ended first. Their records stay and say so.
CREATE FUNCTION @schema@.let_go_of_output(p_excess bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_task record;
  v_tasks integer := 0;
  v_freed bigint := 0;
BEGIN
  IF p_excess <= 0 THEN
    RETURN 0;
  END IF;
  FOR v_task IN SELECT t.id, t.stored FROM @schema@.task t WHERE t.state >= 3 AND t.stored > 0
    ORDER BY t.completed_at, t.id LIMIT 100
                FOR NO KEY UPDATE SKIP LOCKED LOOP
    EXIT WHEN v_freed >= p_excess;
    DELETE FROM @schema@.output o WHERE o.task = v_task.id;
    UPDATE @schema@.task t SET stored = 0, output_gone = true WHERE t.id = v_task.id;
    v_tasks := v_tasks + 1;
    v_freed := v_freed + v_task.stored;
  END LOOP;
  UPDATE @schema@.meta o SET stored = o.stored - v_freed WHERE v_freed > 0;
  RETURN v_tasks;
END $$;

-- Kept: 100,000 events, or those of 7 days, whichever is less.
CREATE FUNCTION @schema@.trim_events(p_now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_kept bigint := (SELECT m.next_seq - 100000 FROM @schema@.meta m);
  v_many bigint;
BEGIN
  DELETE FROM @schema@.event e WHERE e.seq = ANY (ARRAY(
    SELECT o.seq FROM (SELECT n.seq, n.at FROM @schema@.event n WHERE n.seq IS NOT NULL ORDER BY n.seq LIMIT 1000) o
    WHERE o.seq < v_kept OR o.at < p_now - interval '7 days')) AND e.seq IS NOT NULL;
  GET DIAGNOSTICS v_many = ROW_COUNT;
  RETURN v_many;
EXCEPTION WHEN lock_not_available THEN
  RETURN 0;
END $$;

-- When the oldest task that is kept has ended; records name workers and lanes.
CREATE FUNCTION @schema@.oldest_end() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((SELECT t.completed_at FROM @schema@.task t WHERE t.state >= 3 ORDER BY t.completed_at, t.id LIMIT 1),
    'infinity');
END $$;

-- Workers that have been gone for long, and what such ones still seemed to run. Returns the lanes in which tasks became ready.
CREATE FUNCTION @schema@.tidy_workers(p_now timestamptz) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
  w record;
  v_lanes integer[] := '{}';
  v_before timestamptz := least(p_now - interval '7 days', @schema@.oldest_end());
BEGIN
  FOR w IN SELECT o.id, o.gone_at, o.draining,
             EXISTS (SELECT FROM @schema@.task t WHERE t.worker = o.id AND t.state = 2) AS is_left
           FROM @schema@.worker o WHERE o.state = 3 LOOP
    IF w.is_left THEN  -- a claim that was on its way when the worker was given up
      v_lanes := v_lanes || @schema@.give_up(w.id, true);
    ELSIF w.gone_at < v_before AND NOT w.draining THEN  -- a drain is kept for who comes back
      DELETE FROM @schema@.worker o WHERE o.id = w.id;
      DELETE FROM @schema@.told o WHERE o.worker = w.id;
    END IF;
  END LOOP;
  RETURN v_lanes;
EXCEPTION WHEN lock_not_available THEN
  RETURN '{}';
END $$;

-- Tasks that are left in retired lanes, where nobody looks.
CREATE FUNCTION @schema@.leave_retired_lanes() RETURNS TABLE(ready integer[], moved bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM @schema@.lane l WHERE l.retired_at IS NOT NULL LIMIT 1;
  IF FOUND THEN
    RETURN QUERY SELECT l.ready, l.moved FROM @schema@.leave_lanes(@schema@.queued_lanes()) l;
  END IF;
EXCEPTION WHEN lock_not_available THEN
  NULL;  -- the next sweep
END $$;

-- Lanes that nobody needs, if there are more than the queue was made for. One look for each: the planner must not read all
-- tasks that wait. Those that are retired may be many, and are reached by when they were: records name them.
CREATE FUNCTION @schema@.tidy_lanes(p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_running integer[] := ARRAY(SELECT t.lane FROM @schema@.task t WHERE t.state = 2);
  v_before timestamptz := least(p_now, @schema@.oldest_end()) - interval '1 day';  -- clocks are put back
  v_unneeded integer[];  -- what was claimed meanwhile is seen when it runs
  v_too_many bigint := (SELECT count(*) FROM @schema@.lane l WHERE l.retired_at IS NULL) - 1000;
BEGIN
  PERFORM FROM @schema@.lane l WHERE l.retired_at IS NOT NULL LIMIT 1;
  IF FOUND THEN
    -- The record of what still runs there will name it.
    UPDATE @schema@.lane l SET retired_at = p_now WHERE l.id = ANY (v_running) AND l.retired_at < p_now - interval '1 hour';
    v_unneeded := ARRAY(SELECT o.id FROM @schema@.lane o WHERE o.retired_at < v_before AND o.id <> ALL (v_running)
                        AND @schema@.is_empty(o.id) ORDER BY o.retired_at LIMIT 1000);
    DELETE FROM @schema@.lane l WHERE l.id = ANY (v_unneeded)
      AND l.id <> ALL (ARRAY(SELECT t.lane FROM @schema@.task t WHERE t.state = 2));
  END IF;
  IF v_too_many > 0 THEN
    v_unneeded := ARRAY(SELECT o.id FROM @schema@.lane o WHERE o.retired_at IS NULL AND o.id <> ALL (v_running)
                        AND @schema@.is_empty(o.id) LIMIT least(v_too_many, 20));
    UPDATE @schema@.lane l SET retired_at = p_now WHERE l.retired_at IS NULL AND l.id = ANY (v_unneeded)
      AND l.id <> ALL (ARRAY(SELECT t.lane FROM @schema@.task t WHERE t.state = 2));
  END IF;
EXCEPTION WHEN lock_not_available THEN
  NULL;
END $$;

-- Lanes that have tasks which are ready or wait, each found behind the one before it.
CREATE FUNCTION @schema@.queued_lanes() RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
  v_lanes integer[] := '{}';
  v_lane integer := 0;
BEGIN
  LOOP
    v_lane := least(
      (SELECT t.lane FROM @schema@.task t WHERE t.state = 1 AND t.lane > v_lane ORDER BY t.lane, t.rank, t.id LIMIT 1),
      (SELECT t.lane FROM @schema@.task t WHERE t.state = 0 AND t.lane > v_lane
       ORDER BY t.lane, t.open_after, t.held, t.due LIMIT 1));
    EXIT WHEN v_lane IS NULL;
    v_lanes := v_lanes || v_lane;
  END LOOP;
  RETURN v_lanes;
END $$;

-- Whether no task of a lane waits or is ready.
CREATE FUNCTION @schema@.is_empty(p_lane integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM @schema@.task t WHERE t.lane = p_lane AND t.state = 1 LIMIT 1;
  IF NOT FOUND THEN
    PERFORM FROM @schema@.task t WHERE t.lane = p_lane AND t.state = 0 LIMIT 1;
  END IF;
  RETURN NOT FOUND;
END $$;

-- A task that was on its way while its lane was retired goes where such tasks go now. Not one that runs: what its worker reports
-- meanwhile would not see a lane that is made here.
CREATE FUNCTION @schema@.leave_lanes(p_lanes integer[]) RETURNS TABLE(ready integer[], moved bigint) LANGUAGE plpgsql AS $$
DECLARE
  v_retired integer[] := ARRAY(SELECT l.id FROM @schema@.lane l WHERE l.id = ANY (p_lanes) AND l.retired_at IS NOT NULL);
  v_tasks bigint[] := ARRAY(SELECT t.id FROM unnest(v_retired) AS u(lane) CROSS JOIN LATERAL (
      (SELECT o.id FROM @schema@.task o WHERE o.lane = u.lane AND o.state = 1 LIMIT 100)
      UNION ALL (SELECT o.id FROM @schema@.task o WHERE o.lane = u.lane AND o.state = 0 LIMIT 100)) t);
BEGIN
  v_tasks := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_tasks) AND t.state + 0 < 2
    AND t.lane = ANY (v_retired) ORDER BY t.id FOR NO KEY UPDATE SKIP LOCKED);
  RETURN QUERY WITH gone AS (
    UPDATE @schema@.task t SET lane = @schema@.lane_in_group(l.id, l.grp) FROM @schema@.lane l
    WHERE t.id = ANY (v_tasks) AND l.id = t.lane AND l.retired_at IS NOT NULL RETURNING t.lane, t.state)
  SELECT array_agg(g.lane) FILTER (WHERE g.state = 1), count(*) FROM gone g;
END $$;
