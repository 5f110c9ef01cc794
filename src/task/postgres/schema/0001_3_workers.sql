-- Who is there: the queue's founding, workers coming, beating and leaving, wake-ups.

-- The owner's: makes the queue's row, once.
CREATE FUNCTION @schema@.found_v1(p_project text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM @schema@.make_durable();
  INSERT INTO @schema@.meta(version, oldest, project, queue, system, database, home, timeline, epoch)
  SELECT 1, 1, p_project, gen_random_uuid(), s.system_identifier, d.oid, '@schema@.meta'::regclass,
    @schema@.server_timeline(), @schema@.new_epoch()
  FROM pg_control_system() s, pg_database d WHERE d.datname = current_database() ON CONFLICT DO NOTHING;
  INSERT INTO @schema@.gate(kind, name, version) VALUES ('sweep', '', 0) ON CONFLICT DO NOTHING;
  RETURN (SELECT project FROM @schema@.meta);
END $$;

CREATE FUNCTION @schema@.new_epoch() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT pg_catalog.left(pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''), 16)
$$;

CREATE FUNCTION @schema@.hello_v1() RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog,
  pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  m @schema@.meta;
BEGIN
  PERFORM @schema@.check_isolation();  -- the first call of every connection
  SELECT * INTO m FROM @schema@.meta;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the queue has not been founded' USING ERRCODE = 'DU002';
  END IF;
  RETURN json_build_object('version', m.version, 'oldest', m.oldest, 'project', m.project, 'queue', m.queue,
    'system', (SELECT s.system_identifier::text FROM pg_control_system() s), 'timeline', m.timeline, 'serverTimeline', @schema@.server_timeline(), 'epoch', m.epoch,
    'nextSeq', m.next_seq, 'newestEventMs', @schema@.ms(m.newest_event_at),
    'settings', json_build_object('queue_capacity', m.queue_capacity, 'keep_days', m.keep_days, 'keep_tasks',
      m.keep_tasks,
                                  'keep_output', m.keep_output),
    'serverVersion', current_setting('server_version_num')::integer, 'recovery', pg_is_in_recovery(),
    'now', @schema@.ms(clock_timestamp()), 'sessionUser', session_user, 'adopted', @schema@.is_home(m))::text;
END $$;

-- What a worker says of itself is told to all others, and the shortest lease is how often all beat. Its name is its own.
CREATE FUNCTION @schema@.check_offer(p_lease_ms bigint, p_lost_after_ms bigint, p_slots integer, p_labels text[],
  p_accepts text[], p_agents text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (p_lease_ms BETWEEN 30000 AND 3600000 AND p_lost_after_ms BETWEEN p_lease_ms AND 604800000) IS NOT TRUE THEN
    RAISE EXCEPTION '%', '{"refused":"lease"}' USING ERRCODE = 'DU003';
  ELSIF p_slots < 0 THEN
    RAISE EXCEPTION '%', '{"refused":"slots"}' USING ERRCODE = 'DU003';
  ELSIF EXISTS (SELECT FROM unnest(p_labels) AS u(label) WHERE u.label LIKE 'name=%' OR octet_length(u.label) > 64)
    OR cardinality(p_labels) > 100 OR cardinality(p_accepts) > 1000 OR cardinality(p_agents) > 1000 THEN
    RAISE EXCEPTION '%', '{"refused":"labels"}' USING ERRCODE = 'DU003';
  ELSIF array_position(p_labels || p_accepts || p_agents, NULL) IS NOT NULL THEN
    RAISE EXCEPTION '%', '{"refused":"null"}' USING ERRCODE = 'DU003';
  END IF;
END $$;

CREATE FUNCTION @schema@.attach_v1(p_name text, p_worker bigint, p_old uuid[], p_new uuid, p_machine text,
  p_lease_ms bigint,
  p_lost_after_ms bigint, p_labels text[], p_accepts text[], p_agents text[], p_slots integer, p_run boolean,
    p_version text,
  p_protocol integer)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
DECLARE
  m @schema@.meta;
  w @schema@.worker;
  v_other @schema@.worker;
  v_timeline integer := @schema@.server_timeline();
  v_labels text[] := coalesce(p_labels, '{}') || ('name=' || p_name);
  v_takes_over boolean;
  v_drains boolean;
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- a claim waits for the standby, and comes behind this
  SELECT * INTO m FROM @schema@.meta;
  IF @schema@.is_home(m) IS NOT TRUE THEN
    PERFORM @schema@.refuse_copy();
  ELSIF v_timeline < m.timeline THEN
    RAISE EXCEPTION 'timeline: the server is on % and the queue was on %', v_timeline, m.timeline
      USING ERRCODE = 'DU002';
  ELSIF v_timeline > m.timeline THEN
    PERFORM @schema@.refuse_new_server();
  END IF;
  IF p_run AND NOT pg_has_role(session_user, '@schema@_worker', 'MEMBER')
    AND NOT pg_has_role(session_user, '@schema@_owner', 'MEMBER') THEN
    RAISE EXCEPTION '%', '{"refused":"role"}' USING ERRCODE = 'DU003';
  END IF;
  PERFORM @schema@.check_offer(p_lease_ms, p_lost_after_ms, p_slots, p_labels, p_accepts, p_agents);
  -- By its incarnation alone: one whose first answer was lost does not know its number, or only that of an earlier self.
  SELECT * INTO w FROM @schema@.worker o WHERE o.incarnation = ANY (p_old || p_new) AND o.state <> 3
  ORDER BY o.id = p_worker DESC NULLS LAST, o.id DESC LIMIT 1 FOR NO KEY UPDATE;
  v_takes_over := FOUND;
  SELECT * INTO v_other FROM @schema@.worker o WHERE o.name = p_name AND o.state <> 3 AND o.id IS DISTINCT FROM w.id;
  IF FOUND THEN
    RAISE EXCEPTION '%', json_build_object('refused', 'name-taken', 'worker', v_other.id, 'machine', v_other.machine,
        'known', v_takes_over)
      USING ERRCODE = 'DU003';
  END IF;
  IF v_takes_over THEN
    UPDATE @schema@.worker o SET name = p_name, incarnation = p_new, machine = p_machine, beat = o.beat + 1,
      beat_at = clock_timestamp(),
      state = CASE WHEN o.draining THEN 1 ELSE 0 END, silent_beat = NULL, lease_ms = p_lease_ms,
      lost_after_ms = p_lost_after_ms, slots = CASE WHEN p_run THEN p_slots ELSE 0 END, runs = p_run, labels = v_labels,
      accepts = coalesce(p_accepts, '{}'), agents = coalesce(p_agents, '{}'), version = p_version,
        protocol = p_protocol,
      login = session_user
    WHERE o.id = w.id RETURNING o.* INTO w;
  ELSE
    -- Who drained and left drains when it comes back.
    UPDATE @schema@.worker o SET draining = false WHERE o.name = p_name AND o.state = 3 AND o.draining;
    v_drains := FOUND;
    INSERT INTO @schema@.worker(draining, state, name, incarnation, machine, beat_at, lease_ms, lost_after_ms, slots, runs,
      labels, accepts, agents, version, protocol, login, recovering, told_timeline)
    VALUES (v_drains, CASE WHEN v_drains THEN 1 ELSE 0 END, p_name, p_new, p_machine, clock_timestamp(), p_lease_ms, p_lost_after_ms, CASE WHEN p_run THEN p_slots
      ELSE 0 END, p_run,
      v_labels, coalesce(p_accepts, '{}'), coalesce(p_agents, '{}'), p_version, p_protocol, session_user,
      m.recovering_until IS NOT NULL, m.timeline)
    ON CONFLICT DO NOTHING RETURNING * INTO w;
    IF NOT FOUND THEN  -- somebody was quicker
      RAISE EXCEPTION '%', '{"refused":"name-taken"}' USING ERRCODE = 'DU003';
    END IF;
  END IF;
  DELETE FROM @schema@.waiter a WHERE a.worker = w.id;
  IF p_run THEN
    INSERT INTO @schema@.waiter(worker, waits) VALUES (w.id, false);
  END IF;
  PERFORM @schema@.find_lanes(w.id);
  PERFORM @schema@.tell_worker(w.name, w.state);
  RETURN json_build_object('worker', w.id, 'name', w.name, 'took_over', v_takes_over,
    -- Also if the server has lost that it was there.
    'recovering', w.told_timeline < m.timeline OR (NOT v_takes_over AND p_worker IS NOT NULL
      AND m.recovering_until IS NOT NULL), 'running', (
    SELECT coalesce(json_agg(json_build_object('task', t.id, 'fence', t.fence, 'attempt', t.attempts, 'started',
      t.announced,
                                               'cancelling', t.cancelling, 'onLost', t.on_lost, 'retries', t.retries,
      'spared', t.spared + t.lost, 'agent', (SELECT l.agent FROM @schema@.lane l WHERE l.id = t.lane)) ORDER BY t.id), '[]')
    FROM @schema@.task t WHERE t.worker = w.id AND t.state = 2))::text;
END $$;

-- Need not be synced, and waits for no standby: nothing that is acknowledged depends on it.
CREATE FUNCTION @schema@.beat_v1(p_worker bigint, p_incarnation uuid, p_waiting boolean, p_slots integer,
  p_labels text[],
  p_accepts text[], p_agents text[], p_lease_ms bigint, p_lost_after_ms bigint)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  m @schema@.meta;
  w @schema@.worker;
  v_was smallint;
  v_is_told boolean;
  v_lease_ms bigint;
  v_lost_after_ms bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT o.state, o.told_timeline IS NOT DISTINCT FROM @schema@.server_timeline(),
    coalesce(p_lease_ms, o.lease_ms), coalesce(p_lost_after_ms, o.lost_after_ms)
  INTO v_was, v_is_told, v_lease_ms, v_lost_after_ms
  FROM @schema@.worker o
  WHERE o.id = p_worker AND o.incarnation = p_incarnation AND o.state <> 3 FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  ELSIF NOT v_is_told THEN
    PERFORM @schema@.refuse_untold();
  END IF;
  PERFORM @schema@.check_offer(v_lease_ms, v_lost_after_ms, p_slots, p_labels, p_accepts, p_agents);
  UPDATE @schema@.worker o SET beat = o.beat + 1, beat_at = clock_timestamp(),
    -- One that runs tasks and has no slots is about to stop.
    state = CASE WHEN o.draining OR (o.runs AND p_slots = 0) THEN 1 ELSE 0 END, silent_beat = NULL,
    slots = CASE WHEN o.runs THEN coalesce(p_slots, o.slots) ELSE 0 END,
    labels = CASE WHEN p_labels IS NULL THEN o.labels ELSE p_labels || ('name=' || o.name) END,
      accepts = coalesce(p_accepts, o.accepts),
    agents = coalesce(p_agents, o.agents), lease_ms = v_lease_ms, lost_after_ms = v_lost_after_ms
  WHERE o.id = p_worker RETURNING o.* INTO w;
  IF p_waiting THEN
    UPDATE @schema@.waiter a SET waits = true WHERE a.worker = p_worker AND NOT a.waits;
  END IF;
  PERFORM @schema@.find_lanes(p_worker);
  IF v_was <> w.state THEN
    PERFORM @schema@.tell_worker(w.name, w.state);
  END IF;
  SELECT * INTO m FROM @schema@.meta;
  RETURN (
    WITH mine AS MATERIALIZED (
      SELECT t.id, t.fence, t.cancelling, t.attempts, t.announced, t.on_lost, t.retries, t.spared + t.lost AS spared,
        (SELECT l.agent FROM @schema@.lane l WHERE l.id = t.lane) AS agent
      FROM @schema@.task t WHERE t.worker = p_worker AND t.state = 2),
    others AS MATERIALIZED (SELECT * FROM @schema@.worker o WHERE o.state <> 3)
    SELECT json_build_object(
      'cancels', (SELECT coalesce(json_agg(json_build_object('task', c.id, 'fence', c.fence)), '[]') FROM mine c
        WHERE c.cancelling),
      'workers', (SELECT json_agg(json_build_object('id', o.id, 'name', o.name, 'beat', o.beat, 'state', o.state,
        'runs', o.runs, 'lease', o.lease_ms,
                    'lostAfter', o.lost_after_ms, 'silentBeat', o.silent_beat,
        -- A claim that was on its way when it fell silent.
        'toRepeat', o.state = 2 AND EXISTS (SELECT FROM @schema@.task t WHERE t.worker = o.id AND t.state = 2
          AND t.on_lost = 1)) ORDER BY o.id) FROM others o),
      'mine', (SELECT coalesce(json_agg(json_build_object('task', c.id, 'fence', c.fence, 'attempt', c.attempts,
        'started', c.announced, 'cancelling', c.cancelling, 'onLost', c.on_lost, 'agent', c.agent, 'retries', c.retries,
        'spared', c.spared)), '[]') FROM mine c),
      'shortestLease', (SELECT min(o.lease_ms) FROM others o WHERE o.state < 2),
      'epoch', m.epoch, 'timeline', m.timeline, 'serverTimeline', @schema@.server_timeline(),
      'newestEventMs', @schema@.ms(m.newest_event_at),
      'gates', (SELECT coalesce(sum(g.version), 0) FROM @schema@.gate g),
      'agents', (SELECT coalesce(json_agg(DISTINCT a.agent), '[]') FROM others o CROSS
        JOIN unnest(o.accepts) AS a(agent)
                 WHERE o.runs),
      'limits', (SELECT coalesce(json_agg(DISTINCT n.label), '[]') FROM others o CROSS JOIN unnest(o.labels) AS n(label)
                 WHERE o.state = 0 AND o.runs AND n.label LIKE 'limit=%'),
      'unnumbered', EXISTS (SELECT FROM @schema@.event e WHERE e.seq IS NULL AND e.id > m.low_event),
      'draining', w.draining, 'recovering', w.recovering)::text);
END $$;

CREATE FUNCTION @schema@.wait_v1(p_worker bigint, p_incarnation uuid, p_waiting boolean) RETURNS void LANGUAGE plpgsql
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE @schema@.waiter a SET waits = p_waiting WHERE a.worker = p_worker AND a.waits <> p_waiting;
END $$;

-- Of the workers that wait for tasks of these lanes, twice as many as there are new tasks are told, each by its own channel.
-- One that has filled its slots still says that it waits, and is passed over.
CREATE FUNCTION @schema@.wake_v1(p_worker bigint, p_incarnation uuid, p_lanes integer[], p_counts integer[])
  RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_waits boolean;
  v_of_lane integer;
  v_woken integer := 0;
BEGIN
  SELECT EXISTS (SELECT FROM @schema@.waiter a WHERE a.waits) INTO v_waits
  FROM @schema@.worker w WHERE w.id = p_worker AND w.incarnation = p_incarnation AND w.state <> 3;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  ELSIF NOT v_waits THEN
    RETURN 0;
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  FOR i IN 1..least(cardinality(p_lanes), 1000) LOOP
    WITH woken AS (
      UPDATE @schema@.waiter a SET waits = false WHERE a.worker = ANY (ARRAY(
        SELECT b.worker FROM @schema@.lane l CROSS JOIN @schema@.waiter b JOIN @schema@.worker c ON c.id = b.worker
        WHERE l.id = p_lanes[i] AND b.waits AND c.state = 0 AND @schema@.serves(l, c)
          AND c.slots > (SELECT count(*) FROM @schema@.task t WHERE t.worker = c.id AND t.state = 2)
        ORDER BY random() LIMIT greatest(2 * least(p_counts[i], 1000), 0) FOR NO KEY UPDATE OF b SKIP LOCKED))
      RETURNING a.worker)
    SELECT count(pg_notify('@schema@_w' || w.worker, 'task')) INTO v_of_lane FROM woken w;
    v_woken := v_woken + v_of_lane;
  END LOOP;
  RETURN v_woken;
END $$;

CREATE FUNCTION @schema@.nudge_v1(p_worker bigint, p_incarnation uuid, p_other bigint, p_what text) RETURNS void
  LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify('@schema@_w' || p_other, p_what);
END $$;

-- What a worker has that is not heard of any more: attempts that may be repeated are. With `p_all` the others are lost for
-- good; if it has left, what never began is queued again. Returns the lanes in which tasks became ready. Rows may be locked
-- for as long as a standby is missing, and beats come behind this: such tasks are left to the next call, or to a sweep.
CREATE FUNCTION @schema@.give_up(p_other bigint, p_all boolean) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
  v_task @schema@.task;
  v_lanes integer[] := '{}';
  v_has_left boolean := (SELECT w.has_left FROM @schema@.worker w WHERE w.id = p_other);
  v_timeout text;
BEGIN
  IF p_all THEN
    DELETE FROM @schema@.waiter a WHERE a.worker = p_other;
  END IF;
  v_timeout := @schema@.wait_for_nobody();
  FOR v_task IN SELECT * FROM @schema@.task t WHERE t.worker = p_other AND t.state = 2 ORDER BY t.id
    FOR NO KEY UPDATE SKIP LOCKED LOOP
    BEGIN
      IF v_task.cancelling AND (p_all OR v_task.on_lost = 1) THEN
        UPDATE @schema@.task t SET attempts = t.attempts - 1  -- it never began
        WHERE t.id = v_task.id AND v_has_left AND NOT v_task.announced;
        v_lanes := v_lanes || @schema@.end_task(v_task.id, 5::smallint, NULL, NULL);
      ELSIF v_has_left AND NOT v_task.announced THEN
        v_lanes := v_lanes || @schema@.queue_again(v_task.id, -1, 0);
      ELSIF v_task.on_lost = 1 AND v_task.lost + 1 >= 3 THEN
        UPDATE @schema@.task t SET lost = t.lost + 1 WHERE t.id = v_task.id;
        v_lanes := v_lanes || @schema@.end_task(v_task.id, 4::smallint, 4::smallint, @schema@.thrice_lost());
      ELSIF v_task.on_lost = 1 THEN
        v_lanes := v_lanes || @schema@.queue_again(v_task.id, 0, 1);
      ELSIF p_all THEN
        v_lanes := v_lanes || @schema@.end_task(v_task.id, 4::smallint, 4::smallint, 'its worker was not heard of again');
      END IF;
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', v_timeout, true);
  RETURN v_lanes;
END $$;

-- From now on whoever would wait for a lock is refused (55P03). Returns what was set before.
CREATE FUNCTION @schema@.wait_for_nobody() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_before text := current_setting('lock_timeout');
BEGIN
  PERFORM set_config('lock_timeout', '10ms', true);
  RETURN v_before;
END $$;

CREATE FUNCTION @schema@.silence_v1(p_worker bigint, p_incarnation uuid, p_other bigint, p_beat bigint) RETURNS text
  LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  w @schema@.worker;
  v_lanes integer[];
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'local', true);  -- a beat must not wait for the standby behind this row
  SELECT * INTO w FROM @schema@.worker o WHERE o.id = p_other AND o.beat = p_beat AND o.state <> 3 FOR NO KEY UPDATE;
  IF NOT FOUND OR p_other = p_worker THEN
    RETURN '{"silent":false,"ready":[]}';
  END IF;
  IF w.state <> 2 THEN
    UPDATE @schema@.worker o SET state = 2, silent_beat = o.beat WHERE o.id = p_other;
    PERFORM @schema@.tell_worker(w.name, 2::smallint);
  END IF;
  v_lanes := @schema@.give_up(p_other, false);
  RETURN concat('{"silent":true,"ready":', @schema@.counted(v_lanes), '}');
END $$;

CREATE FUNCTION @schema@.lose_v1(p_worker bigint, p_incarnation uuid, p_other bigint, p_beat bigint) RETURNS text
  LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  w @schema@.worker;
  v_lanes integer[];
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM set_config('synchronous_commit', 'local', true);
  SELECT * INTO w FROM @schema@.worker o WHERE o.id = p_other AND o.beat = p_beat AND o.state = 2 FOR NO KEY UPDATE;
  IF NOT FOUND OR p_other = p_worker THEN
    RETURN '{"lost":false,"ready":[]}';
  END IF;
  UPDATE @schema@.worker o SET state = 3, gone_at = clock_timestamp() WHERE o.id = p_other;
  PERFORM @schema@.tell_worker(w.name, 3::smallint);
  v_lanes := @schema@.give_up(p_other, true);
  RETURN concat('{"lost":true,"ready":', @schema@.counted(v_lanes), '}');
END $$;

CREATE FUNCTION @schema@.leave_v1(p_worker bigint, p_incarnation uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s'
  SET jit = off SET enable_seqscan = off AS $$
DECLARE
  w @schema@.worker;
BEGIN
  PERFORM set_config('synchronous_commit', 'local', true);  -- others need the rows that this locks, also without a standby
  UPDATE @schema@.worker o SET state = 3, has_left = true, gone_at = clock_timestamp()
  WHERE o.id = p_worker AND o.incarnation = p_incarnation AND o.state <> 3 RETURNING o.* INTO w;
  IF NOT FOUND THEN
    RETURN '{"left":false,"ready":[]}';
  ELSIF w.told_timeline IS DISTINCT FROM @schema@.server_timeline() THEN
    PERFORM @schema@.refuse_untold();  -- what it has run may look as if it never began
  END IF;
  PERFORM @schema@.tell_worker(w.name, 3::smallint);
  RETURN concat('{"left":true,"ready":', @schema@.counted(@schema@.give_up(p_worker, true)), '}');
END $$;
