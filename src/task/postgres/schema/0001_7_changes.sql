-- What people change: cancel, hold, edit, restart, remove, pause. Each locks what a task comes after, then its own row, then those
-- that come after it, each in order of id: as an end does, also where an edit has put a task behind a later one.

CREATE FUNCTION @schema@.cancel_v1(p_worker bigint, p_incarnation uuid, p_task bigint) RETURNS text LANGUAGE plpgsql
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s'
  SET jit = off SET enable_seqscan = off AS $$
DECLARE
  t @schema@.task;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  SELECT * INTO t FROM @schema@.task o WHERE o.id = p_task FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF t.state >= 3 THEN
    UPDATE @schema@.task o SET fence = o.fence WHERE o.id = p_task;  -- so that this answer, too, waits for the standby
    RETURN json_build_object('outcome', 'ended', 'state', @schema@.world(t.state, true), 'worker', t.worker, 'fence',
      t.fence)::text;
  ELSIF t.state = 2 THEN
    UPDATE @schema@.task o SET cancelling = true WHERE o.id = p_task;
    RETURN json_build_object('outcome', 'cancelling', 'state', @schema@.world(t.state, t.announced), 'worker',
      t.worker, 'fence', t.fence)::text;
  END IF;
  PERFORM @schema@.end_task(p_task, 5::smallint, NULL, NULL);
  RETURN json_build_object('outcome', 'cancelled', 'state', 4, 'worker', NULL, 'fence', t.fence)::text;
END $$;

CREATE FUNCTION @schema@.hold_v1(p_worker bigint, p_incarnation uuid, p_task bigint, p_held boolean) RETURNS text
  LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  t @schema@.task;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  SELECT * INTO t FROM @schema@.task o WHERE o.id = p_task FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF t.state >= 2 THEN
    RETURN json_build_object('outcome', 'not-queued', 'state', @schema@.world(t.state, t.announced))::text;
  END IF;
  IF t.held = p_held THEN
    UPDATE @schema@.task o SET held = p_held WHERE o.id = p_task;
    RETURN json_build_object('outcome', 'same', 'state', 0)::text;
  END IF;
  UPDATE @schema@.task o SET held = p_held, state = @schema@.queued_state(p_held, o.open_after, o.due)
  WHERE o.id = p_task RETURNING o.* INTO t;
  PERFORM @schema@.tell_task(t, 0::smallint, NULL, CASE WHEN p_held THEN 'taskHeld' ELSE 'taskReleased' END);
  RETURN json_build_object('outcome', 'changed', 'state', 0, 'lane', t.lane, 'ready', t.state = 1)::text;
END $$;

-- `p_change`: what is new, the whole body with it, and in `was` the version of the body that it was made of.
CREATE FUNCTION @schema@.edit_v1(p_worker bigint, p_incarnation uuid, p_task bigint, p_change json) RETURNS text
  LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_after bigint[];
  v_open bigint[];
  v_missing bigint;
  v_failed bigint;
  v_cycle bigint;
  v_lane integer;
  v_group text := p_change ->> 'group';
  v_not_before timestamptz;
  t @schema@.task;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  IF (p_change -> 'changed')::text !~ '^\[[A-Za-z", ]{0,200}\]$' THEN  -- readers take it over as it is
    RAISE EXCEPTION 'not names of what has changed' USING ERRCODE = '22023';
  END IF;
  IF p_change -> 'after' IS NOT NULL THEN
    v_after := ARRAY(SELECT DISTINCT a::bigint FROM json_array_elements_text(p_change -> 'after') AS a ORDER BY 1);
    -- One at a time, so that two of them cannot make a cycle together.
    INSERT INTO @schema@.gate(kind, name) VALUES ('edit', '') ON CONFLICT DO NOTHING;
    PERFORM FROM @schema@.gate g WHERE g.kind = 'edit' FOR NO KEY UPDATE;
  END IF;
  PERFORM FROM @schema@.task o WHERE o.id = ANY (v_after) ORDER BY o.id FOR NO KEY UPDATE;
  SELECT * INTO t FROM @schema@.task o WHERE o.id = p_task FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF t.state >= 2 THEN
    RETURN json_build_object('outcome', 'not-queued', 'state', @schema@.world(t.state, t.announced))::text;
  ELSIF EXISTS (SELECT FROM @schema@.request r WHERE r.task = p_task
    AND p_change ->> 'was' <> @schema@.version_of(r.body)) THEN
    RETURN '{"outcome":"other"}';  -- somebody has edited it since its body was read
  END IF;
  IF v_after IS NOT NULL THEN
    WITH RECURSIVE behind(id) AS (
      SELECT p_task UNION SELECT a.task FROM behind b JOIN @schema@.after a ON a.dependency = b.id
        JOIN @schema@.task q ON q.id = a.task AND q.state < 3)
    SELECT min(b.id) INTO v_cycle FROM behind b WHERE b.id = ANY (v_after);
    SELECT min(a.id) FILTER (WHERE o.id IS NULL), min(o.id) FILTER (WHERE o.state > 3),
      array_agg(o.id) FILTER (WHERE o.state <> 3)
    INTO v_missing, v_failed, v_open FROM unnest(v_after) AS a(id) LEFT JOIN @schema@.task o ON o.id = a.id;
    IF v_cycle IS NOT NULL THEN
      RETURN json_build_object('outcome', 'cycle', 'cycle', v_cycle, 'state', 0)::text;
    ELSIF v_missing IS NOT NULL THEN
      RETURN json_build_object('outcome', 'missing', 'missing', v_missing, 'state', 0)::text;
    ELSIF v_failed IS NOT NULL THEN
      RETURN json_build_object('outcome', 'failed', 'failed', v_failed, 'state', 0)::text;
    END IF;
    DELETE FROM @schema@.after a WHERE a.task = p_task;
    INSERT INTO @schema@.after(task, dependency, open) SELECT p_task, a, coalesce(a = ANY (v_open), false)
      FROM unnest(v_after) AS a;
    UPDATE @schema@.task o SET has_dependents = true WHERE o.id = ANY (v_after) AND NOT o.has_dependents;
  END IF;
  v_lane := t.lane;
  IF v_group IS NOT NULL THEN
    v_lane := @schema@.lane_in_group(t.lane, v_group);
  END IF;
  v_not_before := CASE WHEN (p_change ->> 'delay')::bigint > 0
    THEN v_now + @schema@.span((p_change ->> 'delay')::bigint)
                       WHEN p_change ->> 'notBefore' IS NOT NULL
                         THEN timestamptz 'epoch' + @schema@.span((p_change ->> 'notBefore')::bigint)
                       WHEN p_change ->> 'delay' IS NULL THEN t.not_before END;
  UPDATE @schema@.request r SET key_body = CASE WHEN r.key IS NOT NULL AND p_change ->> 'body' IS NOT NULL
    THEN coalesce(r.key_body, r.body) ELSE r.key_body END,
    prompt = coalesce(p_change ->> 'prompt', r.prompt), body = coalesce(p_change ->> 'body', r.body),
    labels = coalesce(p_change ->> 'labels', r.labels), metadata = coalesce(p_change ->> 'metadata', r.metadata)
  WHERE r.task = p_task;
  UPDATE @schema@.task o SET rank = coalesce(~(p_change ->> 'priority')::bigint, o.rank), lane = v_lane,
    not_before = v_not_before,
    due = greatest(v_not_before, o.retry_at), has_after = CASE WHEN v_after IS NULL THEN o.has_after
      ELSE cardinality(v_after) > 0 END,
    open_after = CASE WHEN v_after IS NULL THEN o.open_after ELSE coalesce(cardinality(v_open), 0) END,
    state = @schema@.queued_state(o.held, CASE WHEN v_after IS NULL THEN o.open_after
      ELSE coalesce(cardinality(v_open), 0) END,
                                  greatest(v_not_before, o.retry_at))
  WHERE o.id = p_task RETURNING o.* INTO t;
  PERFORM @schema@.tell_task(t, 0::smallint, NULL, 'taskEdited',
    concat(',"changed":' || (p_change -> 'changed')::text));
  RETURN json_build_object('outcome', 'changed', 'state', 0, 'lane', t.lane, 'ready', t.state = 1)::text;
END $$;

-- The lane of the same tasks in another group.
CREATE FUNCTION @schema@.lane_in_group(p_lane integer, p_group text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_lane integer;
BEGIN
  SELECT n.id INTO v_lane FROM @schema@.lane l JOIN @schema@.lane n ON n.agent = l.agent AND n.grp = p_group
    AND n.needs = l.needs
    AND n.submitter = l.submitter AND n.retired_at IS NULL WHERE l.id = p_lane;
  IF NOT FOUND THEN
    LOCK TABLE @schema@.lane IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO @schema@.lane(agent, grp, needs, submitter, agent_json)
    SELECT l.agent, p_group, l.needs, l.submitter, l.agent_json FROM @schema@.lane l WHERE l.id = p_lane
    ON CONFLICT DO NOTHING;
    RETURN @schema@.lane_in_group(p_lane, p_group);
  END IF;
  RETURN v_lane;
END $$;

-- The same id once more; its attempts go on counting, and none of those so far counts against its retries.
CREATE FUNCTION @schema@.requeue_v1(p_worker bigint, p_incarnation uuid, p_task bigint) RETURNS text LANGUAGE plpgsql
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s'
  SET jit = off SET enable_seqscan = off AS $$
DECLARE
  t @schema@.task;
  v_was smallint;
  v_stored bigint;
  v_missing bigint;
  v_failed bigint;
  v_open bigint[];
  v_lane integer;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  -- When its own row is locked nobody can come after it any more: who did is looked for behind that.
  PERFORM FROM @schema@.task o WHERE o.id = ANY (ARRAY(SELECT a.dependency FROM @schema@.after a WHERE a.task = p_task))
    ORDER BY o.id FOR NO KEY UPDATE;
  PERFORM FROM @schema@.task o WHERE o.id = p_task FOR NO KEY UPDATE;
  PERFORM FROM @schema@.task o WHERE o.id = ANY (ARRAY(SELECT a.task FROM @schema@.after a WHERE a.dependency = p_task))
    ORDER BY o.id FOR NO KEY UPDATE;
  SELECT * INTO t FROM @schema@.task o WHERE o.id = p_task;
  IF NOT FOUND THEN
    RETURN '{"outcome":"unknown"}';
  ELSIF t.state < 3 THEN
    RETURN json_build_object('outcome', 'not-ended', 'state', @schema@.world(t.state, t.announced))::text;
  ELSIF EXISTS (SELECT FROM @schema@.meta m WHERE m.queued >= m.queue_capacity) THEN
    RETURN json_build_object('outcome', 'full', 'state', @schema@.world(t.state, true),
      'capacity', (SELECT m.queue_capacity FROM @schema@.meta m))::text;
  ELSIF t.has_env AND EXISTS (SELECT FROM @schema@.request r WHERE r.task = p_task AND r.env IS NULL) THEN
    RETURN json_build_object('outcome', 'env-gone', 'state', @schema@.world(t.state, true))::text;
  END IF;
  SELECT min(a.dependency) FILTER (WHERE o.id IS NULL), min(o.id) FILTER (WHERE o.state > 3),
    array_agg(o.id) FILTER (WHERE o.state <> 3)
  INTO v_missing, v_failed, v_open FROM @schema@.after a LEFT JOIN @schema@.task o ON o.id = a.dependency
    WHERE a.task = p_task;
  IF v_missing IS NOT NULL THEN
    RETURN json_build_object('outcome', 'missing', 'missing', v_missing, 'state', @schema@.world(t.state, true))::text;
  END IF;
  v_was := @schema@.world(t.state, true);
  v_stored := t.stored;
  SELECT @schema@.lane_in_group(l.id, l.grp) INTO v_lane FROM @schema@.lane l WHERE l.id = t.lane
    AND l.retired_at IS NOT NULL;  -- nobody looks there
  -- With a fence of its own: an attempt that another server has forgotten does not come in its place.
  DELETE FROM @schema@.result r WHERE r.task = p_task;
  UPDATE @schema@.after a SET open = coalesce(a.dependency = ANY (v_open), false) WHERE a.task = p_task;
  UPDATE @schema@.task o SET state = CASE WHEN cardinality(v_open) > 0 THEN 0 ELSE 1 END,
    open_after = coalesce(cardinality(v_open), 0), lane = coalesce(v_lane, o.lane),
    spared = o.attempts, lost = 0, fence = nextval('@schema@.fence'), announced = false, held = false, not_before = NULL,
    due = NULL, retry_at = NULL, started_at = NULL,
    completed_at = NULL, pid = NULL, exit_code = NULL, signal = NULL, error_reason = NULL, error_message = NULL,
      late = NULL, stored = 0
  WHERE o.id = p_task RETURNING o.* INTO t;
  PERFORM @schema@.tell_task(t, v_was, -v_stored);
  WITH again AS (
    UPDATE @schema@.after a SET open = true FROM @schema@.task q
    WHERE a.dependency = p_task AND q.id = a.task AND q.state < 2 AND NOT a.open RETURNING a.task)
  UPDATE @schema@.task o SET open_after = o.open_after + 1, state = 0 FROM again g WHERE o.id = g.task;
  IF v_failed IS NOT NULL THEN
    PERFORM @schema@.end_task(p_task, 4::smallint, 5::smallint, 'task-' || v_failed || ' did not succeed');
    RETURN json_build_object('outcome', 'queued', 'state', 3, 'lane', t.lane)::text;
  END IF;
  RETURN json_build_object('outcome', 'queued', 'state', 0, 'lane', t.lane)::text;
END $$;

-- All that is known of these tasks, which are locked.
CREATE FUNCTION @schema@.erase(p_tasks bigint[], p_by text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_deltas bigint[];
  v_stored bigint;
BEGIN
  WITH gone AS (DELETE FROM @schema@.task t WHERE t.id = ANY (p_tasks) RETURNING t.state, t.stored)
  SELECT ARRAY[0, 0, -count(*) FILTER (WHERE g.state = 3), -count(*) FILTER (WHERE g.state = 4),
    -count(*) FILTER (WHERE g.state = 5)],
    -sum(g.stored) INTO v_deltas, v_stored FROM gone g;
  DELETE FROM @schema@.request r WHERE r.task = ANY (p_tasks);
  DELETE FROM @schema@.result r WHERE r.task = ANY (p_tasks);
  DELETE FROM @schema@.output o WHERE o.task = ANY (p_tasks);
  DELETE FROM @schema@.output_state o WHERE o.task = ANY (p_tasks);
  DELETE FROM @schema@.after a WHERE a.task = ANY (p_tasks);
  DELETE FROM @schema@.handle h WHERE h.task = ANY (p_tasks);
  PERFORM @schema@.tell('tasksRemoved', concat('{"taskIds":[', (SELECT string_agg('"task-' || u.id || '"', ','
    ORDER BY u.id) FROM unnest(p_tasks) AS u(id)),
                                               '],"by":', @schema@.quoted(p_by), '}'), v_deltas, v_stored);
END $$;

-- The queued task that comes after this one, if there is one.
CREATE FUNCTION @schema@.needed_by(p_task bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT min(a.task) FROM @schema@.after a JOIN @schema@.task q ON q.id = a.task
          WHERE a.dependency = p_task AND (q.state < 2 OR (q.state = 2 AND NOT q.announced)));
END $$;

-- Ended tasks that a queued one comes after, or those that none does. `p_state` as the world sees it; NULL: all.
CREATE FUNCTION @schema@.ended_before(p_state smallint, p_before timestamptz, p_needed boolean, p_most integer)
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  IF p_state > 2 THEN  -- they are few, and have an index of their own
    RETURN ARRAY(
      SELECT t.id FROM @schema@.task t WHERE t.state >= 4 AND t.state = p_state + 1 AND t.completed_at < p_before
        AND p_needed = (t.has_dependents AND @schema@.needed_by(t.id) IS NOT NULL)
      ORDER BY t.id LIMIT p_most);
  END IF;
  RETURN ARRAY(
    SELECT t.id FROM @schema@.task t WHERE t.state >= 3 AND (p_state IS NULL OR t.state = p_state + 1)
      AND t.completed_at < p_before AND p_needed = (t.has_dependents AND @schema@.needed_by(t.id) IS NOT NULL)
    ORDER BY t.completed_at, t.id LIMIT p_most);
END $$;

CREATE FUNCTION @schema@.remove_v1(p_worker bigint, p_incarnation uuid, p_tasks bigint[], p_state smallint,
  p_older_ms bigint, p_by text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  v_most constant integer := 1000;
  v_before timestamptz := coalesce(clock_timestamp() - @schema@.span(p_older_ms), 'infinity');
  v_asked bigint[] := p_tasks;
  v_going bigint[];
  v_needed bigint[];
  v_kept json;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  IF p_tasks IS NULL THEN
    v_asked := @schema@.ended_before(p_state, v_before, false, v_most);
  END IF;
  v_asked := ARRAY(SELECT DISTINCT u.id FROM unnest(v_asked) AS u(id) ORDER BY u.id);
  PERFORM FROM @schema@.task t WHERE t.id = ANY (v_asked[1:v_most]) ORDER BY t.id FOR UPDATE;
  WITH looked AS (
    SELECT u.id, CASE WHEN t.id IS NULL THEN 'unknown' WHEN t.state < 3 THEN 'not-ended' WHEN n.task IS NOT NULL
      THEN 'needed' END AS reason,
      n.task AS needed_by, CASE WHEN t.id IS NOT NULL THEN @schema@.world(t.state, t.announced) END AS state
    FROM unnest(v_asked[1:v_most]) AS u(id) LEFT JOIN @schema@.task t ON t.id = u.id
    LEFT JOIN LATERAL (SELECT CASE WHEN t.has_dependents THEN @schema@.needed_by(t.id) END AS task) n ON true)
  SELECT array_agg(l.id ORDER BY l.id) FILTER (WHERE l.reason IS NULL),
    coalesce(json_agg(json_build_object('id', l.id, 'reason', l.reason, 'by', l.needed_by, 'state', l.state)
      ORDER BY l.id)
             FILTER (WHERE l.reason IS NOT NULL), '[]') INTO v_going, v_kept FROM looked l;
  IF v_going IS NOT NULL THEN
    PERFORM @schema@.erase(v_going, p_by);
  END IF;
  IF p_tasks IS NULL AND cardinality(v_asked) < v_most THEN  -- all that is left of them is needed
    v_needed := @schema@.ended_before(p_state, v_before, true, v_most);
    SELECT coalesce(json_agg(json_build_object('id', k.id, 'reason', 'needed', 'by', k.needed_by, 'state', k.state)),
      '[]') INTO v_kept
    FROM (SELECT t.id, @schema@.needed_by(t.id) AS needed_by, @schema@.world(t.state, true) AS state
          FROM @schema@.task t WHERE t.id = ANY (v_needed)) k
    WHERE k.needed_by IS NOT NULL;
  END IF;
  RETURN json_build_object('removed', coalesce(to_json(v_going), '[]'), 'kept', v_kept, 'more',
    cardinality(v_asked) > v_most OR (p_tasks IS NULL AND cardinality(v_asked) = v_most))::text;
END $$;

-- What nobody has said of a group is said by the settings of each daemon, which this overrides. `p_by_settings`: those of
-- a daemon say this from now on, and what was said before counts no more.
CREATE FUNCTION @schema@.pause_v1(p_worker bigint, p_incarnation uuid, p_group text, p_paused boolean,
  p_by_settings boolean DEFAULT false) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' AS $$
DECLARE
  v_kind text := CASE WHEN p_group IS NULL THEN 'queue' ELSE 'group' END;
  v_was boolean;
  v_changed boolean;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  INSERT INTO @schema@.gate(kind, name) VALUES (v_kind, coalesce(p_group, '')) ON CONFLICT DO NOTHING;
  SELECT g.paused INTO v_was FROM @schema@.gate g WHERE g.kind = v_kind AND g.name = coalesce(p_group, '')
    FOR NO KEY UPDATE;
  v_changed := CASE WHEN v_kind = 'queue' THEN coalesce(v_was, false) <> p_paused
    WHEN p_by_settings THEN coalesce(v_was <> p_paused, false) ELSE v_was IS DISTINCT FROM p_paused END;
  UPDATE @schema@.gate g SET version = g.version + CASE WHEN v_changed THEN 1 ELSE 0 END,
    paused = CASE WHEN p_by_settings OR (v_kind = 'queue' AND NOT p_paused) THEN NULL ELSE p_paused END
  WHERE g.kind = v_kind AND g.name = coalesce(p_group, '');
  IF v_changed THEN
    PERFORM @schema@.tell(CASE WHEN p_paused THEN 'queuePaused' ELSE 'queueResumed' END,
                          concat('{', '"group":' || to_json(p_group)::text,
                            CASE WHEN p_by_settings THEN ',"by":"settings"' END, '}'));
  END IF;
  RETURN json_build_object('changed', v_changed, 'pausedGroups', (
    SELECT coalesce(json_agg(g.name ORDER BY g.name), '[]') FROM @schema@.gate g WHERE g.kind = 'group'
      AND g.paused))::text;
END $$;

-- Ends the hold of an agent; false: there was none.
CREATE FUNCTION @schema@.release_agent(p_agent text, p_by text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  UPDATE @schema@.gate g SET held_until = NULL, held_since = NULL, held_task = NULL, held_text = NULL,
    version = g.version + 1
  WHERE g.kind = 'agent' AND g.name = p_agent AND g.held_until IS NOT NULL;
  IF FOUND THEN
    PERFORM @schema@.tell('agentReleased', concat('{"agent":', @schema@.quoted(p_agent), ',"by":"', p_by, '"}'));
    RETURN true;
  END IF;
  RETURN false;
END $$;

CREATE FUNCTION @schema@.release_v1(p_worker bigint, p_incarnation uuid, p_agent text) RETURNS text LANGUAGE plpgsql
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  RETURN json_build_object('released', @schema@.release_agent(p_agent, 'request'))::text;
END $$;

CREATE FUNCTION @schema@.handle_v1(p_worker bigint, p_incarnation uuid, p_task bigint, p_handle text) RETURNS text
  LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
DECLARE
  v_handle text;
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  PERFORM FROM @schema@.task t WHERE t.id = p_task FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO @schema@.handle AS h(task, handle) VALUES (p_task, p_handle)
  ON CONFLICT (task) DO UPDATE SET handle = h.handle RETURNING h.handle INTO v_handle;
  RETURN v_handle;
END $$;

-- An event of the daemon itself. Its numbers grow, and one that was told is not told again.
CREATE FUNCTION @schema@.tell_v1(p_worker bigint, p_incarnation uuid, p_number bigint, p_kind text, p_params text)
  RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM @schema@.guard(p_worker, p_incarnation);
  -- Readers put the number into the text as it is.
  IF p_kind !~ '^[a-z][A-Za-z]{0,63}$' OR p_kind ~ '^(task|worker|queue|agent|daemon)'
    OR json_typeof(p_params::json) <> 'object' OR p_params !~ '^\{["}]' OR p_params ~ '[\x01-\x1f]'
    OR octet_length(p_params) > 1048576 THEN
    RAISE EXCEPTION 'not an event of a daemon' USING ERRCODE = '22023';
  END IF;
  INSERT INTO @schema@.told AS o(worker, number) VALUES (p_worker, p_number)
  ON CONFLICT (worker) DO UPDATE SET number = excluded.number WHERE o.number < excluded.number;
  IF FOUND THEN
    PERFORM @schema@.tell(p_kind, p_params);
    RETURN true;
  END IF;
  RETURN false;
END $$;
