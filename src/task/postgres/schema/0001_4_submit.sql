-- Submit. All input is there before the first lock. One usual task and many that come after none have ways of their own, since
-- they are what costs.

-- What a submit is known by: its key, or else its own random id. Not md5, which some servers refuse.
CREATE FUNCTION @schema@.ident_of(p_id uuid, p_key text) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_key IS NULL THEN p_id
    ELSE pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(p_key, 'UTF8')), 1, 16),
      'hex')::uuid END
$$;

CREATE FUNCTION @schema@.submit_v1(p_worker bigint, p_incarnation uuid, p_ids uuid[], p_keys text[], p_agents text[],
  p_groups text[],
  p_needs text[], p_own boolean[], p_priorities bigint[], p_retries integer[], p_on_lost smallint[], p_delays bigint[],
  p_not_before bigint[], p_prompts text[], p_metadata text[], p_labels text[], p_bodies text[], p_envs text[],
    p_after text[])
RETURNS TABLE(place integer, id bigint, state smallint, fresh boolean, body text, refusal text, lane integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_many integer := coalesce(cardinality(p_ids), 0);
  v_name text;
  v_runs boolean;
  v_room bigint;
  v_lane integer;
  v_agent text;
  v_is_usual boolean;  -- the server is known, what it commits is durable, and what it sees is not old
BEGIN
  -- A row by its key costs half of what it costs in a join.
  SELECT w.name, w.runs INTO v_name, v_runs FROM @schema@.worker w
  WHERE w.id = p_worker AND w.incarnation = p_incarnation AND w.state <> 3;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  ELSIF NOT v_runs AND true = ANY (p_own) THEN  -- its name could be that of a worker which is away
    RAISE EXCEPTION 'who runs no tasks has none of its own' USING ERRCODE = '22023';
  END IF;
  SELECT m.queue_capacity - m.queued, m.timeline IS NOT DISTINCT FROM @schema@.server_timeline()
    AND current_setting('synchronous_commit') = 'on' AND current_setting('transaction_isolation') = 'read committed'
    INTO v_room, v_is_usual FROM @schema@.meta m;
  IF NOT v_is_usual THEN
    PERFORM @schema@.guard(p_worker, p_incarnation);
  END IF;
  IF p_needs[1] = '' AND NOT p_own[1] THEN  -- the lane of the first task, which most often is that of all
    SELECT l.id, l.agent_json INTO v_lane, v_agent FROM @schema@.lane l
    WHERE l.agent = p_agents[1] AND l.grp = p_groups[1] AND l.needs = '{}' AND l.submitter = '' AND l.retired_at IS NULL;
  END IF;
  IF v_many = 1 AND v_lane IS NOT NULL AND v_room > 0 AND p_keys[1] IS NULL AND coalesce(p_after[1], '') = ''
     AND p_envs[1] IS NULL AND p_delays[1] IS NULL AND p_not_before[1] IS NULL THEN
    -- The usual one. A few plain statements are quicker than one that can do all.
    INSERT INTO @schema@.request AS r(task, ident, submitted_by, prompt, labels, metadata, body)
    VALUES (nextval('@schema@.task_id'), p_ids[1], session_user, p_prompts[1], p_labels[1], p_metadata[1], p_bodies[1])
    ON CONFLICT (ident) DO UPDATE SET touched = r.touched + 1  -- so that this answer waits for the standby, too
    RETURNING r.task, r.touched = 0 INTO id, fresh;
    IF fresh THEN
      INSERT INTO @schema@.task(id, rank, created_at, lane, retries, state, on_lost)
      VALUES (id, ~p_priorities[1], v_now, v_lane, coalesce(p_retries[1], 0), 1, coalesce(p_on_lost[1], 0));
      INSERT INTO @schema@.event(id, task, at, arrived_ms, becomes, kind, params)
      VALUES (nextval('@schema@.event_id'), id, v_now, @schema@.ms(v_now), 0, 'taskQueued',
        @schema@.task_params(id, 0::smallint, v_agent, 0, 0, ',"createdAt":"' || @schema@.iso(v_now) || '"'));
      place := 1;
      state := 0;
      lane := v_lane;
      RETURN NEXT;
    ELSE
      RETURN QUERY SELECT 1, t.id, @schema@.world(t.state, t.announced), false, coalesce(r.key_body, r.body),
        NULL::text, t.lane
        FROM @schema@.request r JOIN @schema@.task t ON t.id = r.task WHERE r.ident = p_ids[1];
    END IF;
  ELSIF v_many = 1 THEN
    RETURN QUERY SELECT s.* FROM @schema@.submit_one(1, v_name, v_room, p_ids[1], p_keys[1], p_agents[1],
      p_groups[1], p_needs[1], p_own[1], p_priorities[1], p_retries[1], p_on_lost[1], p_delays[1], p_not_before[1],
      p_prompts[1], p_metadata[1], p_labels[1], p_bodies[1], p_envs[1], p_after[1]) s;
  ELSIF v_many > v_room OR coalesce(array_to_string(p_after, ''), '') <> '' THEN
    -- In one order, whatever this call asks for.
    PERFORM FROM @schema@.task t WHERE t.id = ANY (ARRAY(SELECT a::bigint FROM unnest(p_after) AS u(ids)
      CROSS JOIN unnest(string_to_array(nullif(u.ids, ''), ',')) AS a)) ORDER BY t.id FOR NO KEY UPDATE;
    RETURN QUERY SELECT s.* FROM unnest(p_ids, p_keys, p_agents, p_groups, p_needs, p_own, p_priorities, p_retries,
        p_on_lost, p_delays, p_not_before, p_prompts, p_metadata, p_labels, p_bodies, p_envs, p_after) WITH ORDINALITY
      AS a(id, key, agent, grp, needs, own, priority, retries, on_lost, delay, not_before, prompt, metadata, labels,
        body,
        env, after, place)
    CROSS JOIN LATERAL @schema@.submit_one(a.place::integer, v_name, v_room - a.place + 1, a.id, a.key,
      a.agent,
      a.grp, a.needs, a.own, a.priority, a.retries, a.on_lost, a.delay, a.not_before, a.prompt, a.metadata, a.labels,
      a.body, a.env, a.after) s
    ORDER BY a.place;
  ELSIF v_many > 0 THEN
    RETURN QUERY SELECT s.* FROM @schema@.submit_many(v_name, v_lane, v_agent, v_now, p_ids, p_keys, p_agents,
      p_groups, p_needs, p_own, p_priorities, p_retries, p_on_lost, p_delays, p_not_before, p_prompts, p_metadata,
      p_labels, p_bodies, p_envs) s;
  END IF;
END $$;

-- Many tasks that come after none. `p_lane`: of the first, if it is there.
CREATE FUNCTION @schema@.submit_many(p_name text, p_lane integer, p_agent text, p_now timestamptz,
  p_ids uuid[], p_keys text[], p_agents text[], p_groups text[], p_needs text[], p_own boolean[], p_priorities bigint[],
  p_retries integer[], p_on_lost smallint[], p_delays bigint[], p_not_before bigint[], p_prompts text[],
    p_metadata text[],
  p_labels text[], p_bodies text[], p_envs text[])
RETURNS TABLE(place integer, id bigint, state smallint, fresh boolean, body text, refusal text, lane integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_many integer := cardinality(p_ids);
  v_idents uuid[] := p_ids;
  v_lanes integer[];
  v_agents text[];
  v_ids bigint[];
  v_put bigint[];
  v_done integer;
  v_ms bigint := @schema@.ms(p_now);
  v_more text := ',"attempts":0,"createdAt":"' || @schema@.iso(p_now) || '"}';  -- of each event, made once
BEGIN
  IF p_lane IS NOT NULL AND p_agents = array_fill(p_agents[1], ARRAY[v_many])
    AND p_own = array_fill(false, ARRAY[v_many])
     AND p_groups = array_fill(p_groups[1], ARRAY[v_many]) AND p_needs = array_fill(''::text, ARRAY[v_many]) THEN
    v_lanes := array_fill(p_lane, ARRAY[v_many]);
    v_agents := array_fill(p_agent, ARRAY[v_many]);
  ELSE
    FOR v_turn IN 1..2 LOOP
      SELECT array_agg(l.id ORDER BY a.place), array_agg(l.agent_json ORDER BY a.place) INTO v_lanes, v_agents
      FROM unnest(p_agents, p_groups, p_needs, p_own) WITH ORDINALITY AS a(agent, grp, needs, own, place)
      LEFT JOIN @schema@.lane l ON l.agent = a.agent AND l.grp = a.grp AND l.needs = @schema@.needs_of(a.needs)
        AND l.submitter = CASE WHEN a.own THEN p_name ELSE '' END AND l.retired_at IS NULL;
      EXIT WHEN array_position(v_lanes, NULL) IS NULL;
      PERFORM @schema@.make_lanes(p_agents, p_groups, p_needs, ARRAY(
        SELECT CASE WHEN u.own THEN p_name ELSE '' END FROM unnest(p_own) WITH ORDINALITY AS u(own, place) ORDER BY u.place));
    END LOOP;
  END IF;
  IF cardinality(array_remove(p_keys, NULL)) > 0 THEN
    v_idents := ARRAY(SELECT @schema@.ident_of(u.id, u.key) FROM unnest(p_ids, p_keys) WITH ORDINALITY AS u(id, key,
      place)
                      ORDER BY u.place);
  END IF;
  v_ids := ARRAY(SELECT nextval('@schema@.task_id') FROM generate_series(1, v_many));
  IF v_idents = p_ids THEN
    BEGIN  -- most often none of them is there, and looking for conflicts costs a tenth of all
      INSERT INTO @schema@.request(task, ident, key, submitted_by, prompt, labels, metadata, env, body)
      SELECT a.id, a.ident, a.key, session_user, a.prompt, a.labels, a.metadata, a.env, a.body
      FROM unnest(v_ids, v_idents, p_keys, p_prompts, p_labels, p_metadata, p_envs, p_bodies)
        AS a(id, ident, key, prompt, labels, metadata, env, body);
      v_done := v_many;
    EXCEPTION WHEN unique_violation THEN
      v_done := NULL;
    END;
  END IF;
  IF v_done IS NULL THEN
    INSERT INTO @schema@.request(task, ident, key, submitted_by, prompt, labels, metadata, env, body)
    SELECT a.id, a.ident, a.key, session_user, a.prompt, a.labels, a.metadata, a.env, a.body
    FROM unnest(v_ids, v_idents, p_keys, p_prompts, p_labels, p_metadata, p_envs, p_bodies)
      AS a(id, ident, key, prompt, labels, metadata, env, body)
    ORDER BY a.ident, a.id  -- who has the same keys in another order waits for this one, and not each for the other
    ON CONFLICT (ident) DO NOTHING;
    GET DIAGNOSTICS v_done = ROW_COUNT;
  END IF;
  v_put := v_ids;
  IF v_done < v_many THEN  -- some are there already, and are written to once more
    v_put := ARRAY(SELECT r.task FROM @schema@.request r WHERE r.task = ANY (v_ids));
    UPDATE @schema@.request r SET touched = r.touched + 1 WHERE r.ident = ANY (v_idents) AND r.task <> ALL (v_put);
  END IF;
  INSERT INTO @schema@.task(id, rank, created_at, lane, retries, state, on_lost, has_env, not_before, due)
  SELECT a.id, ~a.priority, p_now, a.lane, coalesce(a.retries, 0), CASE WHEN a.due > p_now THEN 0 ELSE 1 END,
    coalesce(a.on_lost, 0), a.env IS NOT NULL, a.due, a.due
  FROM (SELECT u.*, CASE WHEN u.delay > 0 THEN p_now + @schema@.span(u.delay)
                         WHEN u.not_before IS NOT NULL THEN timestamptz 'epoch' + @schema@.span(u.not_before) END AS due
        FROM unnest(v_ids, v_lanes, p_priorities, p_retries, p_on_lost, p_envs, p_delays, p_not_before)
          AS u(id, lane, priority, retries, on_lost, env, delay, not_before)) a
  WHERE v_done = v_many OR a.id = ANY (v_put);
  INSERT INTO @schema@.event(id, task, at, arrived_ms, becomes, kind, params)
  SELECT nextval('@schema@.event_id'), a.id, p_now, v_ms, 0, 'taskQueued',
    '{"taskId":"task-' || a.id || '","state":"queued","agent":' || a.agent || v_more
  FROM unnest(v_ids, v_agents) AS a(id, agent) WHERE v_done = v_many OR a.id = ANY (v_put);
  IF v_done = v_many THEN
    RETURN QUERY SELECT a.place::integer, a.id, 0::smallint, true, NULL::text, NULL::text, a.lane
      FROM unnest(v_ids, v_lanes) WITH ORDINALITY AS a(id, lane, place);
  ELSE
    RETURN QUERY SELECT a.place::integer, r.task, @schema@.world(t.state, t.announced), r.task = a.id,
        CASE WHEN r.task <> a.id THEN coalesce(r.key_body, r.body) END,
        CASE WHEN r.task <> a.id AND t.state < 3 AND r.env IS DISTINCT FROM a.env THEN 'env' END, t.lane
      FROM unnest(v_ids, v_idents, p_envs) WITH ORDINALITY AS a(id, ident, env, place)
      JOIN @schema@.request r ON r.ident = a.ident JOIN @schema@.task t ON t.id = r.task ORDER BY a.place;
    GET DIAGNOSTICS v_done = ROW_COUNT;
    IF v_done < v_many THEN  -- some were there, and were removed before they were written to
      RETURN QUERY SELECT s.* FROM (
        SELECT u.* FROM unnest(p_ids, v_idents, p_keys, p_agents, p_groups, p_needs, p_own, p_priorities, p_retries,
          p_on_lost, p_delays, p_not_before, p_prompts, p_metadata, p_labels, p_bodies, p_envs) WITH ORDINALITY
        AS u(id, ident, key, agent, grp, needs, own, priority, retries, on_lost, delay, not_before, prompt, metadata,
          labels, body, env, place) ORDER BY u.ident OFFSET 0) a  -- in one order, as above
      CROSS JOIN LATERAL @schema@.submit_one(a.place::integer, p_name, 1::bigint, a.id, a.key, a.agent, a.grp, a.needs, a.own,
        a.priority, a.retries, a.on_lost, a.delay, a.not_before, a.prompt, a.metadata, a.labels, a.body, a.env, '') s
      WHERE (SELECT r.task FROM @schema@.request r WHERE r.ident = a.ident) IS NULL;  -- no join: it could read all requests
    END IF;
  END IF;
END $$;

-- One task, with all that can be in its way. Refusal `env`: the key stands for a task with another one, as far as that is
-- known: it is erased when the task has ended.
CREATE FUNCTION @schema@.submit_one(p_place integer, p_name text, p_room bigint, p_id uuid,
  p_key text, p_agent text, p_group text,
  p_needs text, p_own boolean, p_priority bigint, p_retries integer, p_on_lost smallint, p_delay bigint,
    p_not_before bigint,
  p_prompt text, p_metadata text, p_labels text, p_body text, p_env text, p_after text)
RETURNS TABLE(place integer, id bigint, state smallint, fresh boolean, body text, refusal text, lane integer)
  LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_ident uuid := @schema@.ident_of(p_id, p_key);
  v_after bigint[] := '{}';
  v_due timestamptz := CASE WHEN p_delay > 0 THEN v_now + @schema@.span(p_delay)
                            WHEN p_not_before IS NOT NULL THEN timestamptz 'epoch' + @schema@.span(p_not_before) END;
  v_missing bigint;
  v_failed bigint;
  v_open bigint[];
  v_id bigint;
  v_is_fresh boolean;
  v_body text;
  v_env text;
  v_lane integer;
  v_agent text;
  v_needs text[] := '{}';
BEGIN
  IF p_key IS NOT NULL OR p_room <= 0 OR p_after <> '' THEN  -- what it came after may be gone when it is asked again
    -- Written to, so that this answer waits for the standby, too.
    UPDATE @schema@.request r SET touched = r.touched + 1 WHERE r.ident = v_ident
    RETURNING r.task, coalesce(r.key_body, r.body), r.env INTO v_id, v_body, v_env;
    IF FOUND THEN
      RETURN QUERY SELECT p_place, v_id, @schema@.world(t.state, t.announced), false, v_body,
        CASE WHEN t.state < 3 AND v_env IS DISTINCT FROM p_env THEN 'env' END, t.lane
                   FROM @schema@.task t WHERE t.id = v_id;
      RETURN;
    ELSIF p_room <= 0 THEN
      RETURN QUERY SELECT p_place, NULL::bigint, NULL::smallint, false, NULL::text, 'full:' || m.queue_capacity,
        NULL::integer FROM @schema@.meta m;
      RETURN;
    END IF;
  END IF;
  IF p_after <> '' THEN
    v_after := ARRAY(SELECT DISTINCT a::bigint FROM unnest(string_to_array(p_after, ',')) AS a ORDER BY 1);
  END IF;
  IF p_needs <> '' THEN
    v_needs := @schema@.needs_of(p_needs);
  END IF;
  -- They are locked: one that ends while this is written is never missed. Before the table of lanes, as an edit does it.
  IF cardinality(v_after) > 0 THEN
    PERFORM FROM @schema@.task t WHERE t.id = ANY (v_after) ORDER BY t.id FOR NO KEY UPDATE;
  END IF;
  FOR v_turn IN 1..2 LOOP
    SELECT l.id, l.agent_json INTO v_lane, v_agent FROM @schema@.lane l WHERE l.agent = p_agent AND l.grp = p_group
      AND l.needs = v_needs
      AND l.submitter = CASE WHEN p_own THEN p_name ELSE '' END AND l.retired_at IS NULL;
    EXIT WHEN FOUND;
    PERFORM @schema@.make_lanes(ARRAY[p_agent], ARRAY[p_group], ARRAY[p_needs],
      ARRAY[CASE WHEN p_own THEN p_name ELSE '' END]);
  END LOOP;
  IF cardinality(v_after) > 0 THEN
    SELECT min(a.id) FILTER (WHERE t.id IS NULL), min(t.id) FILTER (WHERE t.state > 3),
      array_agg(t.id) FILTER (WHERE t.state <> 3) INTO v_missing, v_failed, v_open
    FROM unnest(v_after) AS a(id) LEFT JOIN @schema@.task t ON t.id = a.id;
    IF v_missing IS NOT NULL THEN
      RETURN QUERY SELECT p_place, NULL::bigint, NULL::smallint, false, NULL::text, 'unknown:' || v_missing,
        NULL::integer;
      RETURN;
    END IF;
  END IF;
  INSERT INTO @schema@.request AS r(task, ident, key, submitted_by, prompt, labels, metadata, env, body)
  VALUES (nextval('@schema@.task_id'), v_ident, p_key, session_user, p_prompt, p_labels, p_metadata,
          CASE WHEN v_failed IS NULL THEN p_env END, p_body)
  ON CONFLICT (ident) DO UPDATE SET touched = r.touched + 1
  RETURNING r.task, r.touched = 0, coalesce(r.key_body, r.body), r.env INTO v_id, v_is_fresh, v_body, v_env;
  IF NOT v_is_fresh THEN  -- somebody was quicker with the same key
    RETURN QUERY SELECT p_place, v_id, @schema@.world(t.state, t.announced), false, v_body,
        CASE WHEN t.state < 3 AND v_env IS DISTINCT FROM p_env THEN 'env' END, t.lane
                 FROM @schema@.task t WHERE t.id = v_id;
    RETURN;
  END IF;
  INSERT INTO @schema@.task(id, rank, created_at, lane, retries, state, on_lost, has_env, has_after, open_after,
    not_before, due)
  VALUES (v_id, ~p_priority, v_now, v_lane, coalesce(p_retries, 0),
          CASE WHEN v_due > v_now OR cardinality(v_open) > 0 THEN 0 ELSE 1 END, coalesce(p_on_lost, 0),
          p_env IS NOT NULL AND v_failed IS NULL, cardinality(v_after) > 0, coalesce(cardinality(v_open), 0), v_due,
            v_due);
  IF cardinality(v_after) > 0 THEN
    INSERT INTO @schema@.after(task, dependency, open) SELECT v_id, a, coalesce(a = ANY (v_open), false)
      FROM unnest(v_after) AS a;
    UPDATE @schema@.task t SET has_dependents = true WHERE t.id = ANY (v_after) AND NOT t.has_dependents;
  END IF;
  INSERT INTO @schema@.event(id, task, at, arrived_ms, becomes, kind, params)
  VALUES (nextval('@schema@.event_id'), v_id, v_now, @schema@.ms(v_now), 0, 'taskQueued',
    @schema@.task_params(v_id, 0::smallint, v_agent, 0, 0, ',"createdAt":"' || @schema@.iso(v_now) || '"'));
  IF v_failed IS NOT NULL THEN
    PERFORM @schema@.end_task(v_id, 4::smallint, 5::smallint, 'task-' || v_failed || ' did not succeed');
  END IF;
  place := p_place;
  id := v_id;
  state := CASE WHEN v_failed IS NULL THEN 0 ELSE 3 END;
  fresh := true;
  lane := v_lane;
  RETURN NEXT;
END $$;
