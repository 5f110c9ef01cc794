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

-- A little of everything that time brings; more calls do more. Harmless if two do it.
CREATE FUNCTION @schema@.sweep_v1(p_worker bigint, p_incarnation uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' SET jit = off
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_lanes integer[];
  v_removed integer;
  v_events bigint;
  v_next timestamptz;
  m @schema@.meta;
  g record;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'local', true);  -- beats come behind it, and must not wait for the standby
  WITH due AS MATERIALIZED (
    SELECT t.id FROM @schema@.task t WHERE t.state = 0 AND t.due <= v_now AND NOT t.held AND t.open_after = 0
    ORDER BY t.due LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED),
  ready AS (UPDATE @schema@.task t SET state = 1 WHERE t.id = ANY (ARRAY(SELECT d.id FROM due d)) RETURNING t.lane)
  SELECT coalesce(array_agg(r.lane), '{}') INTO v_lanes FROM ready r;
  FOR g IN SELECT o.name FROM @schema@.gate o WHERE o.kind = 'agent' AND o.held_until <= v_now ORDER BY o.name
    FOR NO KEY UPDATE SKIP LOCKED LOOP
    PERFORM @schema@.release_agent(g.name, 'time');
  END LOOP;
  SELECT * INTO m FROM @schema@.meta;
  IF m.recovering_until <= v_now THEN
    PERFORM @schema@.recovered();
  END IF;
  -- One at a time: two would each remove what is too much.
  IF pg_try_advisory_xact_lock('@schema@.task'::regclass::oid::bigint) THEN
    SELECT @schema@.let_go(s.tasks, m.keep_days, v_now) INTO v_removed FROM @schema@.surplus() s;
    PERFORM @schema@.let_go_of_output(s.output) FROM @schema@.surplus() s;
  END IF;
  v_events := @schema@.trim_events(m, v_now);
  PERFORM @schema@.tidy(v_now);
  SELECT min(t.due) INTO v_next FROM @schema@.task t WHERE t.state = 0 AND t.due > v_now;
  RETURN concat('{"ready":', @schema@.counted(v_lanes), ',"removed":', coalesce(v_removed, 0), ',"events":', v_events, ',"more":',
    to_json(cardinality(v_lanes) = 1000 OR coalesce(v_removed, 0) >= 100 OR v_events >= 1000), ',"nextDueMs":',
      coalesce(@schema@.ms(v_next) - @schema@.ms(v_now), -1), '}');
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

-- Ended tasks beyond keep_tasks and keep_days, those that ended first; not one that another comes after, nor one whose handle
-- was promised for a day.
CREATE FUNCTION @schema@.let_go(p_too_many bigint, p_keep_days bigint, p_now timestamptz) RETURNS integer
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
  v_old := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_old) AND t.state > 2
    AND (NOT t.has_dependents OR @schema@.needed_by(t.id) IS NULL));
  IF cardinality(v_old) > 0 THEN
    PERFORM @schema@.erase(v_old, 'retention');
  END IF;
  RETURN cardinality(v_old);
END $$;

-- Output beyond keep_output: that of tasks that ended first. Their records stay and say so.
CREATE FUNCTION @schema@.let_go_of_output(p_excess bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_task record;
  v_freed bigint := 0;
BEGIN
  IF p_excess <= 0 THEN
    RETURN;
  END IF;
  FOR v_task IN SELECT t.id, t.stored FROM @schema@.task t WHERE t.state >= 3 AND t.stored > 0
    ORDER BY t.completed_at, t.id LIMIT 100
                FOR NO KEY UPDATE SKIP LOCKED LOOP
    EXIT WHEN v_freed >= p_excess;
    DELETE FROM @schema@.output o WHERE o.task = v_task.id;
    UPDATE @schema@.task t SET stored = 0, output_gone = true WHERE t.id = v_task.id;
    v_freed := v_freed + v_task.stored;
  END LOOP;
  UPDATE @schema@.meta o SET stored = o.stored - v_freed WHERE v_freed > 0;
END $$;

-- Kept: 100,000 events, or those of 7 days, whichever is less.
CREATE FUNCTION @schema@.trim_events(m @schema@.meta, p_now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_many bigint;
BEGIN
  DELETE FROM @schema@.event e WHERE e.seq = ANY (ARRAY(
    SELECT o.seq FROM (SELECT n.seq, n.at FROM @schema@.event n WHERE n.seq IS NOT NULL ORDER BY n.seq LIMIT 1000) o
    WHERE o.seq < m.next_seq - 100000 OR o.at < p_now - interval '7 days')) AND e.seq IS NOT NULL;
  GET DIAGNOSTICS v_many = ROW_COUNT;
  RETURN v_many;
END $$;

-- Workers that have been gone for long, what such ones still seemed to run, and lanes that nobody needs.
CREATE FUNCTION @schema@.tidy(p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  w record;
  v_oldest timestamptz := coalesce((SELECT min(t.completed_at) FROM @schema@.task t WHERE t.state >= 3), 'infinity');
BEGIN
  FOR w IN SELECT o.id, o.gone_at, EXISTS (SELECT FROM @schema@.task t WHERE t.worker = o.id AND t.state = 2) AS is_left
           FROM @schema@.worker o WHERE o.state = 3 LOOP
    IF w.is_left THEN  -- a claim that was on its way when the worker was given up
      PERFORM @schema@.give_up(w.id, true);
    ELSIF w.gone_at < least(p_now - interval '7 days', v_oldest) THEN  -- records name their workers
      DELETE FROM @schema@.worker o WHERE o.id = w.id;
      DELETE FROM @schema@.told o WHERE o.worker = w.id;
    END IF;
  END LOOP;
  -- A task that was on its way while its lane was retired goes where such tasks go now.
  UPDATE @schema@.task t SET lane = @schema@.lane_in_group(l.id, l.grp) FROM @schema@.lane l
  WHERE l.retired_at IS NOT NULL AND t.lane = l.id AND t.state = 1;
  UPDATE @schema@.task t SET lane = @schema@.lane_in_group(l.id, l.grp) FROM @schema@.lane l
  WHERE l.retired_at IS NOT NULL AND t.lane = l.id AND t.state = 0;
  UPDATE @schema@.task t SET lane = @schema@.lane_in_group(l.id, l.grp) FROM @schema@.lane l
  WHERE l.retired_at IS NOT NULL AND t.lane = l.id AND t.state = 2;
  IF (SELECT count(*) FROM @schema@.lane l WHERE l.retired_at IS NULL) > 100 THEN
    UPDATE @schema@.lane l SET retired_at = p_now WHERE l.retired_at IS NULL AND l.id = ANY (ARRAY(
      SELECT o.id FROM @schema@.lane o WHERE o.retired_at IS NULL
        AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.lane = o.id AND t.state = 1)
        AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.state = 0 AND t.lane = o.id)
          AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.state = 2 AND t.lane = o.id)
      LIMIT 20));
    DELETE FROM @schema@.lane l WHERE l.retired_at < least(p_now - interval '1 day', v_oldest)
      AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.lane = l.id AND t.state = 1)
      AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.state = 0 AND t.lane = l.id)
      AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.state = 2 AND t.lane = l.id);
  END IF;
END $$;
