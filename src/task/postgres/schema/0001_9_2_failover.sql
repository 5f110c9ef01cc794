-- A server that takes over, a copy that is adopted, and what the admin may do.

-- Failover. The server is on a timeline that nobody has seen: ids, fences and event numbers that the old primary may have
-- given out are passed over, and nobody claims before every worker has told what it runs.
CREATE FUNCTION @schema@.renew_v1(p_seen_timeline integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
DECLARE
  m @schema@.meta;
  v_timeline integer := @schema@.server_timeline();
  v_renewed boolean := false;
  v_passed bigint;  -- a million for each server that has taken over: of one before, this one may have heard nothing
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- others need the rows that this locks, also without a standby
  SELECT * INTO m FROM @schema@.meta FOR UPDATE;
  IF @schema@.is_home(m) IS NOT TRUE THEN
    PERFORM @schema@.refuse_copy();
  ELSIF v_timeline < greatest(m.timeline, p_seen_timeline) THEN
    RAISE EXCEPTION 'timeline: the server is on % and the queue was on %', v_timeline,
      greatest(m.timeline, p_seen_timeline) USING ERRCODE = 'DU002';
  ELSIF v_timeline > m.timeline THEN
    v_renewed := true;
    v_passed := 1000000::bigint * (v_timeline - m.timeline);
    PERFORM setval('@schema@.task_id', nextval('@schema@.task_id') + v_passed),
      setval('@schema@.fence', nextval('@schema@.fence') + v_passed),
      setval('@schema@.event_id', nextval('@schema@.event_id') + v_passed);
    UPDATE @schema@.meta o SET timeline = v_timeline, epoch = @schema@.new_epoch(), next_seq = o.next_seq + v_passed,
      epoch_start = o.next_seq + v_passed, renewed_at = clock_timestamp(), renewed_fence = (SELECT f.last_value FROM @schema@.fence f),
      recovering_until = (SELECT clock_timestamp() + @schema@.span(max(w.lease_ms)) FROM @schema@.worker w
        WHERE w.state < 2 AND w.runs) RETURNING o.* INTO m;
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

-- Makes an attempt that its worker knows of what the row says, if the row is older than it. Only a failover can have made
-- it so; `p_is_behind`: there was one lately, or one that this worker has not told anything yet. What was claimed since is as
-- the row says.
CREATE FUNCTION @schema@.restore(p_worker bigint, r record, p_is_behind boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  t @schema@.task;
  v_lane integer;
  v_was smallint;
  -- Counts beyond a million are nobody's: a claim or an end could not add to them.
  v_may boolean := p_is_behind AND coalesce(r.fence <= (SELECT m.renewed_fence FROM @schema@.meta m)
    AND r.attempt BETWEEN 0 AND 1000000 AND coalesce(r.spared, 0) BETWEEN 0 AND 1000000, false);
BEGIN
  -- Without its lock first, which somebody may have for as long as a standby is missing: most often it is as told.
  SELECT * INTO t FROM @schema@.task o WHERE o.id = r.task;
  IF FOUND AND t.state = 2 AND t.worker = p_worker AND t.fence = r.fence THEN
    IF t.cancelling OR r.cancelling IS NOT TRUE THEN
      RETURN true;
    END IF;
  ELSIF FOUND AND (NOT v_may OR t.state >= 3) THEN
    RETURN false;
  END IF;
  SELECT * INTO t FROM @schema@.task o WHERE o.id = r.task FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    -- What it could have claimed there, and no more: nobody's name makes others run what they do not accept.
    IF r.body IS NULL OR NOT v_may OR r.task > (SELECT i.last_value FROM @schema@.task_id i)
      OR coalesce(r.submitter, '') NOT IN ('', (SELECT w.name FROM @schema@.worker w WHERE w.id = p_worker)) THEN
      RETURN false;
    END IF;
    PERFORM @schema@.make_lanes(ARRAY[r.agent], ARRAY[r."group"], ARRAY[coalesce(r.needs, '')],
      ARRAY[coalesce(r.submitter, '')]);
    SELECT l.id INTO v_lane FROM @schema@.lane l WHERE l.agent = r.agent AND l.grp = r."group"
      AND l.needs = @schema@.needs_of(r.needs)
      AND l.submitter = coalesce(r.submitter, '') AND l.retired_at IS NULL;
    INSERT INTO @schema@.request(task, ident, key, submitted_by, prompt, labels, metadata, env, body)
    VALUES (r.task, @schema@.ident_of(gen_random_uuid(), r.key), r.key, session_user, coalesce(r.prompt, '""'),
      r.labels, coalesce(r.metadata, '{}'), r.env, r.body)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN  -- the key has been given anew since
      RETURN false;
    END IF;
    INSERT INTO @schema@.task(id, rank, created_at, lane, retries, state, on_lost, has_env, fence, worker, attempts, spared, cancelling)
    VALUES (r.task, ~coalesce(r.priority, 0), clock_timestamp(), v_lane, coalesce(r.retries, 0), 2,
      coalesce(r."onLost", 0), coalesce(r."hasEnv", false), r.fence, p_worker, r.attempt, coalesce(r.spared, 0), coalesce(r.cancelling, false))
    RETURNING * INTO t;
    INSERT INTO @schema@.event(id, task, at, becomes, kind, params)
    SELECT nextval('@schema@.event_id'), t.id, t.created_at, 0, 'taskQueued',
      @schema@.task_params(t.id, 0::smallint, l.agent_json, 0, 0,
        ',"createdAt":"' || @schema@.iso(t.created_at) || '"') FROM @schema@.lane l WHERE l.id = v_lane;
    RETURN true;
  ELSIF t.state = 2 AND t.worker = p_worker AND t.fence = r.fence THEN
    UPDATE @schema@.task o SET cancelling = true WHERE o.id = r.task AND r.cancelling AND NOT o.cancelling;
    RETURN true;
  ELSIF NOT v_may OR t.state >= 3 OR t.attempts > r.attempt OR (t.fence IS NOT NULL AND t.fence > r.fence)
    OR (t.state < 2 AND t.attempts >= r.attempt) THEN  -- the last: queued again since
    RETURN false;
  END IF;
  v_was := @schema@.world(t.state, t.announced);
  UPDATE @schema@.task o SET state = 2, worker = p_worker, fence = r.fence, attempts = r.attempt, announced = false,
    due = NULL, retry_at = NULL, spared = greatest(o.spared, coalesce(r.spared, 0) - o.lost),
    open_after = 0, cancelling = o.cancelling OR coalesce(r.cancelling, false), started_at = NULL, pid = NULL WHERE o.id = r.task RETURNING o.* INTO t;
  DELETE FROM @schema@.after a WHERE a.task = r.task;  -- what it came after had ended, even if that was lost
  IF v_was = 1 THEN  -- an earlier attempt, whose end was lost
    PERFORM @schema@.tell_task(t, v_was);
  END IF;
  RETURN true;
END $$;

-- What a worker has, and what it has told the ends of in the last moments: those follow by report_v1.
-- `p_running`: `[{"task","fence","attempt","spared","cancelling","pid","ago","agent","group","needs","submitter","body","hasEnv","env","onLost","priority","retries",
-- "key","prompt","metadata","labels"}]`, from "agent" on for a task that the server has lost.
CREATE FUNCTION @schema@.recover_v1(p_worker bigint, p_incarnation uuid, p_running json) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s'
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
DECLARE
  r record;
  v_fenced bigint[] := '{}';
  v_starts json;
  v_is_behind boolean;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'local', true);  -- others need the rows that this locks, also without a standby
  -- One after the other, or each would wait for the other to have told. Before rows of workers, as recovered() does.
  PERFORM FROM @schema@.meta FOR NO KEY UPDATE;
  SELECT w.told_timeline < m.timeline OR coalesce(m.renewed_at > clock_timestamp() - interval '1 day', false) INTO v_is_behind
  FROM @schema@.worker w CROSS JOIN @schema@.meta m WHERE w.id = p_worker AND w.runs;
  IF NOT FOUND THEN  -- it has nothing to tell
    p_running := '[]';
  END IF;
  FOR r IN
    SELECT * FROM json_to_recordset(coalesce(p_running, '[]')) AS x(task bigint, fence bigint, attempt integer,
      pid integer, ago bigint, agent text, "group" text,
      needs text, submitter text, body text, "hasEnv" boolean, env text, "onLost" smallint, priority bigint, retries integer, key text,
        prompt text, metadata text, labels text, spared integer, cancelling boolean)
    ORDER BY task, fence
  LOOP
    IF NOT @schema@.restore(p_worker, r, v_is_behind) THEN
      v_fenced := v_fenced || r.fence;
    END IF;
  END LOOP;
  UPDATE @schema@.worker w SET told_timeline = m.timeline FROM @schema@.meta m WHERE w.id = p_worker;
  SELECT json_agg(json_build_object('task', x.task, 'fence', x.fence, 'pid', x.pid, 'ago', x.ago)) INTO v_starts
  FROM json_to_recordset(coalesce(p_running, '[]')) AS x(task bigint, fence bigint, pid integer, ago bigint)
    WHERE x.pid IS NOT NULL;
  PERFORM FROM @schema@.start_some(p_worker, coalesce(v_starts, '[]'), clock_timestamp(), false);
  IF NOT EXISTS (SELECT FROM @schema@.worker w CROSS JOIN @schema@.meta m WHERE w.state < 2 AND w.runs
    AND w.told_timeline < m.timeline) THEN
    PERFORM @schema@.recovered();
  END IF;
  RETURN json_build_object('fenced', v_fenced, 'output', (  -- how far it is here, by fence
    SELECT coalesce(json_agg(json_build_array(x.fence, coalesce((SELECT o.start + octet_length(o.bytes)
      FROM @schema@.output o WHERE o.task = x.task AND o.attempt = x.attempt ORDER BY o.start DESC LIMIT 1), 0))), '[]')
    FROM json_to_recordset(coalesce(p_running, '[]')) AS x(task bigint, fence bigint, attempt integer)),
    'recovering', EXISTS (SELECT FROM @schema@.meta m
    WHERE m.recovering_until > clock_timestamp()))::text;
END $$;

-- The admin's.

CREATE FUNCTION @schema@.set_v1(p_name text, p_value text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- others need the rows that this locks, also without a standby
  IF p_name NOT IN ('queue_capacity', 'keep_days', 'keep_tasks', 'keep_output') THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF p_value IS NULL OR p_value !~ '^[0-9]{1,15}$' OR (p_name = 'keep_days' AND p_value::bigint > 36500) THEN
    RETURN '{"outcome":"invalid"}';
  END IF;
  EXECUTE format('UPDATE @schema@.meta SET %I = $1', p_name) USING p_value::bigint;
  RETURN '{"outcome":"changed"}';
END $$;

CREATE FUNCTION @schema@.drain_v1(p_name text, p_draining boolean) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
DECLARE
  w @schema@.worker;
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- others need the rows that this locks, also without a standby
  -- One that is gone drains when it comes back, if nobody undrains it.
  SELECT * INTO w FROM @schema@.worker o WHERE o.name = p_name AND (o.state <> 3 OR (o.draining AND NOT p_draining))
  ORDER BY o.state LIMIT 1 FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF p_draining IS NULL THEN  -- the row may hold no NULL, and the server would show it all, with its secret
    RETURN '{"outcome":"invalid"}';
  ELSIF w.draining = p_draining THEN
    RETURN '{"outcome":"same"}';
  END IF;
  UPDATE @schema@.worker o SET draining = p_draining,
    state = CASE WHEN o.state >= 2 THEN o.state WHEN p_draining THEN 1 ELSE 0 END WHERE o.id = w.id RETURNING o.* INTO w;
  IF w.state <> 3 THEN
    PERFORM @schema@.tell_worker(w.name, w.state);
  END IF;
  PERFORM pg_notify('@schema@_w' || w.id, 'drain');
  RETURN '{"outcome":"changed"}';
END $$;

-- A worker is gone, and what it ran is lost. One that is live is, too, if its beat still is `p_beat`, which the caller has
-- watched for its whole lease: where no other worker is, nobody else finds out.
CREATE FUNCTION @schema@.forget_v1(p_name text, p_beat bigint DEFAULT NULL) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  w @schema@.worker;
  v_lanes integer[];
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- others need the rows that this locks, also without a standby
  SELECT * INTO w FROM @schema@.worker o WHERE o.name = p_name AND o.state <> 3 FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF w.state < 2 AND w.beat IS DISTINCT FROM p_beat THEN
    RETURN json_build_object('outcome', 'live', 'beat', w.beat, 'lease', w.lease_ms)::text;
  END IF;
  UPDATE @schema@.worker o SET state = 3, gone_at = clock_timestamp(), draining = false WHERE o.id = w.id;
  PERFORM @schema@.tell_worker(w.name, 3::smallint);
  v_lanes := @schema@.give_up(w.id, true);
  RETURN concat('{"outcome":"changed","ready":', @schema@.counted(v_lanes), '}');
END $$;

-- The owner's: the schema was found elsewhere than where it was made. `run`: queued tasks run here, and what the copy says to be
-- running is lost; `cancel`: nothing of it does. `p_same`: also if it is the same server, with an old backup.
CREATE FUNCTION @schema@.adopt_v1(p_queue text, p_same boolean DEFAULT false) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' AS $$
DECLARE
  w record;
  t record;
BEGIN
  IF p_queue NOT IN ('run', 'cancel') OR p_queue IS NULL THEN
    RETURN '{"outcome":"invalid"}';
  END IF;
  PERFORM @schema@.make_durable();
  PERFORM FROM @schema@.meta FOR UPDATE;
  IF p_same IS NOT TRUE AND EXISTS (SELECT FROM @schema@.meta m WHERE @schema@.is_home(m)) THEN
    RETURN '{"outcome":"same"}';
  END IF;
  UPDATE @schema@.meta m SET system = s.system_identifier, database = d.oid, home = '@schema@.meta'::regclass,
    timeline = @schema@.server_timeline(),
    queue = gen_random_uuid(), epoch = @schema@.new_epoch(),
    epoch_start = m.next_seq + 1000000, next_seq = m.next_seq + 1000000, low_event = 0, seen_event = 0,
      mark_event = 0, mark_xid = NULL, recovering_until = NULL
  FROM pg_control_system() s, pg_database d WHERE d.datname = current_database();
  PERFORM setval('@schema@.task_id', nextval('@schema@.task_id') + 1000000),
    setval('@schema@.fence', nextval('@schema@.fence') + 1000000),
    setval('@schema@.event_id', nextval('@schema@.event_id') + 1000000);
  FOR w IN SELECT o.id FROM @schema@.worker o WHERE o.state <> 3 ORDER BY o.id LOOP
    UPDATE @schema@.worker o SET state = 3, gone_at = clock_timestamp() WHERE o.id = w.id;
    PERFORM @schema@.give_up(w.id, true);
  END LOOP;
  IF p_queue = 'cancel' THEN
    FOR t IN SELECT o.id FROM @schema@.task o WHERE o.state < 2 ORDER BY o.id FOR NO KEY UPDATE LOOP
      PERFORM @schema@.end_task(t.id, 5::smallint, NULL, NULL) FROM @schema@.task o WHERE o.id = t.id AND o.state < 2;
    END LOOP;
  END IF;
  RETURN '{"outcome":"adopted"}';
END $$;
