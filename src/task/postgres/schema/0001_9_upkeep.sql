-- What any daemon does for all: numbering, retention, failover; and what the admin and the owner do. The rights come last.

-- Gives numbers to events whose transactions have been committed, one numbering at a time. `low_event` spares it the rows
-- that have a number, which stay in the index while somebody has an old snapshot. It moves only to what no transaction can
-- fill in any more: every event's transaction had its xid before the event its id, so all with an id up to `seen_event` of
-- the last call are over when all before the xid of this call are.
CREATE FUNCTION @schema@.number_v1(p_most integer) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  m @schema@.meta;
  v_xmin xid8;
  r record;
BEGIN
  -- On disk here, and waiting for no standby: others could not be woken meanwhile, and a failover makes a new epoch.
  PERFORM set_config('synchronous_commit', 'local', true);
  PERFORM FROM @schema@.meta o CROSS JOIN LATERAL (SELECT FROM @schema@.event e WHERE e.seq IS NULL AND e.id > o.low_event LIMIT 1) e;
  IF NOT FOUND THEN
    RETURN 0;  -- what commits from now on is somebody else's
  END IF;
  SELECT * INTO m FROM @schema@.meta FOR UPDATE;
  WITH fresh AS MATERIALIZED (
    SELECT f.id, row_number() OVER () - 1 AS place
    FROM (SELECT e.id FROM @schema@.event e WHERE e.seq IS NULL AND e.id > m.low_event ORDER BY e.id LIMIT p_most) f),
  done AS (
    UPDATE @schema@.event e SET seq = m.next_seq + f.place FROM fresh f WHERE e.id = f.id AND e.seq IS NULL
    RETURNING e.id, e.at, e.was, e.becomes, e.deltas, e.stored)
  SELECT count(*) AS many, max(d.id) AS newest, max(d.at) AS at, coalesce(sum(d.stored), 0) AS stored,
    count(*) FILTER (WHERE d.becomes = 0) - count(*) FILTER (WHERE d.was = 0) + coalesce(sum(d.deltas[1]), 0) AS queued,
    count(*) FILTER (WHERE d.becomes = 1) - count(*) FILTER (WHERE d.was = 1) + coalesce(sum(d.deltas[2]), 0) AS running,
    count(*) FILTER (WHERE d.becomes = 2) - count(*) FILTER (WHERE d.was = 2) + coalesce(sum(d.deltas[3]), 0) AS completed,
    count(*) FILTER (WHERE d.becomes = 3) - count(*) FILTER (WHERE d.was = 3) + coalesce(sum(d.deltas[4]), 0) AS failed,
    count(*) FILTER (WHERE d.becomes = 4) - count(*) FILTER (WHERE d.was = 4) + coalesce(sum(d.deltas[5]), 0) AS cancelled,
    pg_snapshot_xmin(pg_current_snapshot()) AS xmin INTO r FROM done d;
  IF r.many = 0 THEN
    RETURN 0;
  END IF;
  v_xmin := r.xmin;
  UPDATE @schema@.meta o SET next_seq = o.next_seq + r.many, newest_event_at = greatest(o.newest_event_at, r.at), queued = o.queued + r.queued,
    running = o.running + r.running, completed = o.completed + r.completed, failed = o.failed + r.failed,
    cancelled = o.cancelled + r.cancelled, stored = o.stored + r.stored, seen_event = greatest(o.seen_event, r.newest),
    low_event = CASE WHEN o.mark_xid <= v_xmin THEN greatest(o.low_event, least(o.mark_event, r.newest)) ELSE o.low_event END,
    mark_event = CASE WHEN o.mark_xid IS NULL OR o.mark_xid <= v_xmin THEN o.seen_event ELSE o.mark_event END,
    mark_xid = CASE WHEN o.mark_xid IS NULL OR o.mark_xid <= v_xmin THEN pg_current_xact_id() ELSE o.mark_xid END;
  PERFORM pg_notify('@schema@_events', '');
  RETURN r.many;
END $$;

-- A little of everything that time brings; more calls do more. Harmless if two do it.
CREATE FUNCTION @schema@.sweep_v1(p_worker bigint, p_incarnation uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
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
  WITH due AS MATERIALIZED (
    SELECT t.id FROM @schema@.task t WHERE t.state = 0 AND t.due <= v_now AND NOT t.held AND t.open_after = 0
    ORDER BY t.due LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED),
  ready AS (UPDATE @schema@.task t SET state = 1 WHERE t.id = ANY (ARRAY(SELECT d.id FROM due d)) RETURNING t.lane)
  SELECT coalesce(array_agg(r.lane), '{}') INTO v_lanes FROM ready r;
  FOR g IN SELECT o.name FROM @schema@.gate o WHERE o.kind = 'agent' AND o.held_until <= v_now ORDER BY o.name FOR NO KEY UPDATE SKIP LOCKED LOOP
    PERFORM @schema@.release_agent(g.name, 'time');
  END LOOP;
  SELECT * INTO m FROM @schema@.meta;
  IF m.recovering_until <= v_now THEN
    PERFORM @schema@.recovered();
  END IF;
  v_removed := @schema@.let_go(m, v_now);
  PERFORM @schema@.let_go_of_output(m);
  v_events := @schema@.trim_events(m, v_now);
  PERFORM @schema@.tidy(v_now);
  SELECT min(t.due) INTO v_next FROM @schema@.task t WHERE t.state = 0 AND t.due > v_now;
  RETURN concat('{"ready":', @schema@.counted(v_lanes), ',"removed":', v_removed, ',"events":', v_events, ',"more":',
    to_json(cardinality(v_lanes) = 1000 OR v_removed >= 100 OR v_events >= 1000), ',"nextDueMs":', coalesce(@schema@.ms(v_next) - @schema@.ms(v_now), -1), '}');
END $$;

-- Ended tasks beyond keep_tasks and keep_days, those that ended first; not one that another comes after, nor one whose handle
-- was promised for a day.
CREATE FUNCTION @schema@.let_go(m @schema@.meta, p_now timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_too_many bigint := m.completed + m.failed + m.cancelled - m.keep_tasks;
  v_old bigint[];
BEGIN
  v_old := ARRAY(
    SELECT t.id FROM (
      SELECT o.id, o.has_dependents, o.completed_at FROM @schema@.task o WHERE o.state >= 3
        AND o.completed_at < CASE WHEN v_too_many > 0 THEN 'infinity'::timestamptz ELSE p_now - m.keep_days * interval '1 day' END
      ORDER BY o.completed_at, o.id LIMIT 600) t
    WHERE (NOT t.has_dependents OR @schema@.needed_by(t.id) IS NULL)
      AND (t.completed_at < p_now - interval '1 day' OR NOT EXISTS (SELECT FROM @schema@.handle h WHERE h.task = t.id))
    ORDER BY t.completed_at, t.id LIMIT CASE WHEN v_too_many > 0 THEN least(v_too_many, 100) ELSE 100 END);
  v_old := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_old) ORDER BY t.id FOR UPDATE SKIP LOCKED);
  v_old := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.id = ANY (v_old) AND t.state > 2 AND (NOT t.has_dependents OR @schema@.needed_by(t.id) IS NULL));
  IF cardinality(v_old) > 0 THEN
    PERFORM @schema@.erase(v_old, 'retention');
  END IF;
  RETURN cardinality(v_old);
END $$;

-- Output beyond keep_output: that of tasks that ended first. Their records stay and say so.
CREATE FUNCTION @schema@.let_go_of_output(m @schema@.meta) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_excess bigint := m.stored - m.keep_output;
  v_task record;
  v_freed bigint := 0;
BEGIN
  IF v_excess <= 0 THEN
    RETURN;
  END IF;
  FOR v_task IN SELECT t.id, t.stored FROM @schema@.task t WHERE t.state >= 3 AND t.stored > 0 ORDER BY t.completed_at, t.id LIMIT 100
                FOR NO KEY UPDATE SKIP LOCKED LOOP
    EXIT WHEN v_freed >= v_excess;
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
  IF (SELECT count(*) FROM @schema@.lane l WHERE l.retired_at IS NULL) > 100 THEN
    UPDATE @schema@.lane l SET retired_at = p_now WHERE l.retired_at IS NULL AND l.id = ANY (ARRAY(
      SELECT o.id FROM @schema@.lane o WHERE NOT EXISTS (SELECT FROM @schema@.task t WHERE t.lane = o.id AND t.state = 1)
        AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.state = 0 AND t.lane = o.id) AND NOT EXISTS (SELECT FROM @schema@.task t WHERE t.state = 2 AND t.lane = o.id)
      LIMIT 20));
    DELETE FROM @schema@.lane l WHERE l.retired_at < least(p_now - interval '1 day', v_oldest);
  END IF;
END $$;

-- Failover. The server is on a timeline that nobody has seen: ids, fences and event numbers that the old primary may have
-- given out are passed over, and nobody claims before every worker has told what it runs.
CREATE FUNCTION @schema@.renew_v1(p_seen_timeline integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
DECLARE
  m @schema@.meta;
  v_timeline integer := @schema@.server_timeline();
  v_renewed boolean := false;
BEGIN
  SELECT * INTO m FROM @schema@.meta FOR UPDATE;
  IF v_timeline < greatest(m.timeline, p_seen_timeline) THEN
    RAISE EXCEPTION 'timeline: the server is on % and the queue was on %', v_timeline, greatest(m.timeline, p_seen_timeline) USING ERRCODE = 'DU002';
  ELSIF m.system <> (SELECT s.system_identifier FROM pg_control_system() s) THEN
    RAISE EXCEPTION 'adopt: the queue was made on another server' USING ERRCODE = 'DU002';
  ELSIF v_timeline > m.timeline THEN
    v_renewed := true;
    PERFORM setval('@schema@.task_id', nextval('@schema@.task_id') + 1000000), setval('@schema@.fence', nextval('@schema@.fence') + 1000000),
      setval('@schema@.event_id', nextval('@schema@.event_id') + 1000000);
    UPDATE @schema@.meta o SET timeline = v_timeline, epoch = @schema@.new_epoch(), next_seq = o.next_seq + 1000000, epoch_start = o.next_seq + 1000000,
      recovering_until = (SELECT clock_timestamp() + @schema@.span(max(w.lease_ms)) FROM @schema@.worker w WHERE w.state < 2) RETURNING o.* INTO m;
    UPDATE @schema@.worker w SET recovering = true WHERE w.state <> 3;
  END IF;
  RETURN json_build_object('renewed', v_renewed, 'timeline', m.timeline, 'epoch', m.epoch, 'nextSeq', m.next_seq,
                           'recovering', coalesce(m.recovering_until > clock_timestamp(), false))::text;
END $$;

CREATE FUNCTION @schema@.recovered() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE @schema@.meta m SET recovering_until = NULL WHERE m.recovering_until IS NOT NULL;
  UPDATE @schema@.worker w SET recovering = false WHERE w.recovering;
END $$;

-- Makes an attempt that its worker knows of what the row says, if the row is older than it.
CREATE FUNCTION @schema@.restore(p_worker bigint, r record) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  t @schema@.task;
  v_lane integer;
  v_was smallint;
BEGIN
  SELECT * INTO t FROM @schema@.task o WHERE o.id = r.task FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    IF r.body IS NULL THEN
      RETURN false;
    END IF;
    PERFORM @schema@.make_lanes(p_worker, ARRAY[r.agent], ARRAY[r."group"], ARRAY[coalesce(r.needs, '')], ARRAY[false]);
    SELECT l.id INTO v_lane FROM @schema@.lane l WHERE l.agent = r.agent AND l.grp = r."group" AND l.needs = @schema@.needs_of(r.needs)
      AND l.submitter = '' AND l.retired_at IS NULL;
    INSERT INTO @schema@.request(task, ident, key, submitted_by, prompt, labels, metadata, body)
    VALUES (r.task, @schema@.ident_of(gen_random_uuid(), r.key), r.key, session_user, coalesce(r.prompt, '""'), r.labels, coalesce(r.metadata, '{}'), r.body)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN  -- the key has been given anew since
      RETURN false;
    END IF;
    INSERT INTO @schema@.task(id, rank, created_at, lane, retries, state, on_lost, fence, worker, attempts)
    VALUES (r.task, ~coalesce(r.priority, 0), clock_timestamp(), v_lane, coalesce(r.retries, 0), 2, coalesce(r."onLost", 0), r.fence, p_worker, r.attempt)
    RETURNING * INTO t;
    INSERT INTO @schema@.event(id, task, at, becomes, kind, params)
    SELECT nextval('@schema@.event_id'), t.id, t.created_at, 0, 'taskQueued',
      @schema@.task_params(t.id, 0::smallint, l.agent_json, 0, 0, ',"createdAt":"' || @schema@.iso(t.created_at) || '"') FROM @schema@.lane l WHERE l.id = v_lane;
    RETURN true;
  ELSIF t.state = 2 AND t.worker = p_worker AND t.fence = r.fence THEN
    RETURN true;
  ELSIF t.state >= 3 OR t.attempts > r.attempt OR (t.fence IS NOT NULL AND t.fence > r.fence) THEN
    RETURN false;
  END IF;
  v_was := @schema@.world(t.state, t.announced);
  UPDATE @schema@.task o SET state = 2, worker = p_worker, fence = r.fence, attempts = r.attempt, announced = false, due = NULL, retry_at = NULL,
    started_at = NULL, pid = NULL WHERE o.id = r.task RETURNING o.* INTO t;
  IF v_was = 1 THEN  -- an earlier attempt, whose end was lost
    PERFORM @schema@.tell_task(t, v_was);
  END IF;
  RETURN true;
END $$;

-- `p_running`: `[{"task","fence","attempt","pid","ago","agent","group","needs","body","onLost","priority","retries","key","prompt","metadata","labels"}]`;
-- `p_ended`: the same with `ok`, `code`, `signal`, `reason`, `message`, `startedAgo`, `endedAgo`, `cpuUs`, `memory`, `outputBytes`, `retryMs`, `flags`,
-- `result` (base64).
CREATE FUNCTION @schema@.recover_v1(p_worker bigint, p_incarnation uuid, p_running json, p_ended json) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' SET enable_seqscan = off AS $$
DECLARE
  r record;
  v_fenced bigint[] := '{}';
  v_starts json;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  FOR r IN
    SELECT * FROM json_to_recordset(coalesce(p_running, '[]')) AS x(task bigint, fence bigint, attempt integer, pid integer, ago bigint, agent text, "group" text,
      needs text, body text, "onLost" smallint, priority bigint, retries integer, key text, prompt text, metadata text, labels text)
    UNION ALL
    SELECT * FROM json_to_recordset(coalesce(p_ended, '[]')) AS x(task bigint, fence bigint, attempt integer, pid integer, ago bigint, agent text, "group" text,
      needs text, body text, "onLost" smallint, priority bigint, retries integer, key text, prompt text, metadata text, labels text)
    ORDER BY task, fence
  LOOP
    IF NOT @schema@.restore(p_worker, r) THEN
      v_fenced := v_fenced || r.fence;
    END IF;
  END LOOP;
  SELECT json_agg(json_build_object('task', x.task, 'fence', x.fence, 'pid', x.pid, 'ago', x.ago)) INTO v_starts
  FROM json_to_recordset(coalesce(p_running, '[]')) AS x(task bigint, fence bigint, pid integer, ago bigint) WHERE x.pid IS NOT NULL;
  PERFORM FROM (SELECT array_agg(x.task) AS tasks, array_agg(x.fence) AS fences, array_agg(x.ok) AS oks, array_agg(x.code) AS codes, array_agg(x.signal) AS signals,
      array_agg(x.reason) AS reasons, array_agg(x.message) AS messages, array_agg(x.pid) AS pids, array_agg(x."startedAgo") AS started,
      array_agg(x."endedAgo") AS ended, array_agg(x."cpuUs") AS cpu, array_agg(x.memory) AS memory, array_agg(x."outputBytes") AS bytes,
      array_agg(x."retryMs") AS retry, array_agg(x.flags) AS flags, array_agg(decode(x.result, 'base64')) AS results
    FROM json_to_recordset(coalesce(p_ended, '[]')) AS x(task bigint, fence bigint, ok boolean, code integer, signal text, reason smallint, message text, pid integer,
      "startedAgo" bigint, "endedAgo" bigint, "cpuUs" bigint, memory bigint, "outputBytes" bigint, "retryMs" bigint, flags integer, result text)) a
  CROSS JOIN LATERAL @schema@.report_v1(p_worker, p_incarnation, v_starts, a.tasks, a.fences, a.oks, a.codes, a.signals, a.reasons, a.messages, a.pids, a.started, a.ended,
    a.cpu, a.memory, a.bytes, a.retry, NULL, NULL, a.flags, a.results, NULL, 0, NULL, NULL, NULL, NULL) k;
  UPDATE @schema@.worker w SET told_timeline = m.timeline FROM @schema@.meta m WHERE w.id = p_worker;
  IF NOT EXISTS (SELECT FROM @schema@.worker w CROSS JOIN @schema@.meta m WHERE w.state < 2 AND w.told_timeline < m.timeline) THEN
    PERFORM @schema@.recovered();
  END IF;
  RETURN json_build_object('fenced', v_fenced, 'recovering', EXISTS (SELECT FROM @schema@.meta m WHERE m.recovering_until > clock_timestamp()))::text;
END $$;

-- The admin's.

CREATE FUNCTION @schema@.set_v1(p_name text, p_value text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
BEGIN
  IF p_name NOT IN ('queue_capacity', 'keep_days', 'keep_tasks', 'keep_output') THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF p_value IS NULL OR p_value !~ '^[0-9]{1,15}$' THEN
    RETURN '{"outcome":"invalid"}';
  END IF;
  EXECUTE format('UPDATE @schema@.meta SET %I = $1', p_name) USING p_value::bigint;
  RETURN '{"outcome":"changed"}';
END $$;

CREATE FUNCTION @schema@.drain_v1(p_name text, p_draining boolean) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
DECLARE
  w @schema@.worker;
BEGIN
  SELECT * INTO w FROM @schema@.worker o WHERE o.name = p_name AND o.state <> 3 FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF w.draining = p_draining THEN
    RETURN '{"outcome":"same"}';
  END IF;
  UPDATE @schema@.worker o SET draining = p_draining, waiting = false,
    state = CASE WHEN o.state = 2 THEN 2 WHEN p_draining THEN 1 ELSE 0 END WHERE o.id = w.id RETURNING o.* INTO w;
  PERFORM @schema@.tell_worker(w.name, w.state);
  PERFORM pg_notify('@schema@_w' || w.id, 'drain');
  RETURN '{"outcome":"changed"}';
END $$;

-- Of a worker that is not live: it is gone, and what it ran is lost.
CREATE FUNCTION @schema@.forget_v1(p_name text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' SET enable_seqscan = off AS $$
DECLARE
  w @schema@.worker;
  v_lanes integer[];
BEGIN
  SELECT * INTO w FROM @schema@.worker o WHERE o.name = p_name AND o.state <> 3 FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF w.state < 2 THEN
    RETURN '{"outcome":"live"}';
  END IF;
  UPDATE @schema@.worker o SET state = 3, gone_at = clock_timestamp() WHERE o.id = w.id;
  PERFORM @schema@.tell_worker(w.name, 3::smallint);
  v_lanes := @schema@.give_up(w.id, true);
  RETURN concat('{"outcome":"changed","ready":', @schema@.counted(v_lanes), '}');
END $$;

-- The owner's: the schema was found on another server than it was made on. `run`: queued tasks run here, and what the copy says to be
-- running is lost; `cancel`: nothing of it does.
CREATE FUNCTION @schema@.adopt_v1(p_queue text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
DECLARE
  w record;
  t record;
BEGIN
  IF p_queue NOT IN ('run', 'cancel') OR p_queue IS NULL THEN
    RETURN '{"outcome":"invalid"}';
  END IF;
  PERFORM FROM @schema@.meta FOR UPDATE;
  UPDATE @schema@.meta m SET system = s.system_identifier, timeline = @schema@.server_timeline(), queue = gen_random_uuid(), epoch = @schema@.new_epoch(),
    epoch_start = m.next_seq + 1000000, next_seq = m.next_seq + 1000000, low_event = 0, seen_event = 0, mark_event = 0, mark_xid = NULL, recovering_until = NULL
  FROM pg_control_system() s;
  PERFORM setval('@schema@.task_id', nextval('@schema@.task_id') + 1000000), setval('@schema@.fence', nextval('@schema@.fence') + 1000000),
    setval('@schema@.event_id', nextval('@schema@.event_id') + 1000000);
  FOR w IN SELECT o.id FROM @schema@.worker o WHERE o.state <> 3 ORDER BY o.id LOOP
    UPDATE @schema@.worker o SET state = 3, gone_at = clock_timestamp(), waiting = false WHERE o.id = w.id;
    PERFORM @schema@.give_up(w.id, true);
  END LOOP;
  IF p_queue = 'cancel' THEN
    FOR t IN SELECT o.id FROM @schema@.task o WHERE o.state < 2 ORDER BY o.id FOR NO KEY UPDATE LOOP
      PERFORM @schema@.end_task(t.id, 5::smallint, NULL, NULL) FROM @schema@.task o WHERE o.id = t.id AND o.state < 2;
    END LOOP;
  END IF;
  RETURN '{"outcome":"adopted"}';
END $$;

-- Rights: nobody has any that is not named here.
DO $$
DECLARE
  v_reads text[] := ARRAY['hello_v1', 'read_task_v1', 'read_tasks_v1', 'read_request_v1', 'read_events_v1', 'read_events_state_v1', 'read_stats_v1',
    'read_queue_v1', 'read_output_v1', 'read_output_state_v1', 'read_explain_v1', 'read_status_v1', 'read_handle_v1', 'number_v1'];
  v_client text[] := ARRAY['attach_v1', 'beat_v1', 'submit_v1', 'cancel_v1', 'hold_v1', 'edit_v1', 'requeue_v1', 'remove_v1', 'pause_v1', 'release_v1',
    'handle_v1', 'tell_v1', 'wake_v1', 'nudge_v1', 'leave_v1', 'renew_v1', 'recover_v1'];
  v_worker text[] := ARRAY['claim_v1', 'report_v1', 'sweep_v1', 'silence_v1', 'lose_v1', 'wait_v1'];
  v_admin text[] := ARRAY['set_v1', 'drain_v1', 'forget_v1'];
  f record;
BEGIN
  FOR f IN SELECT p.oid::regprocedure AS called, p.proname AS name FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
           WHERE n.nspname = '@schema@' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.called);
    IF f.name = ANY (v_reads) THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO @schema@_watcher, @schema@_client, @schema@_worker, @schema@_admin', f.called);
    ELSIF f.name = ANY (v_client) THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO @schema@_client, @schema@_worker, @schema@_admin', f.called);
    ELSIF f.name = ANY (v_worker) THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO @schema@_worker', f.called);
    ELSIF f.name = ANY (v_admin) THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO @schema@_admin', f.called);
    END IF;
  END LOOP;
END $$;
REVOKE ALL ON TYPE @schema@.record FROM PUBLIC;
GRANT USAGE ON SCHEMA @schema@ TO @schema@_worker, @schema@_client, @schema@_watcher, @schema@_admin;
RESET ROLE;
