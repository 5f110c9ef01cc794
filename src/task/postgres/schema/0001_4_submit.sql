-- Submit. All input is there before the first lock; one statement does it all unless there are dependencies, a lane that is
-- not there yet, or no room.

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
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_many integer := coalesce(cardinality(p_ids), 0);
  v_name text;
  v_room bigint;
  v_done bigint;
BEGIN
  SELECT w.name, m.queue_capacity - m.queued INTO v_name, v_room FROM @schema@.worker w CROSS JOIN @schema@.meta m
  WHERE w.id = p_worker AND w.incarnation = p_incarnation AND w.state <> 3;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  END IF;
  IF v_many = 0 THEN
    RETURN;
  END IF;
  IF v_many = 1 THEN  -- a few plain statements are quicker than one that can do many
    RETURN QUERY SELECT s.* FROM @schema@.submit_one(1, p_worker, v_name, v_room, p_ids[1], p_keys[1], p_agents[1],
      p_groups[1], p_needs[1], p_own[1],
      p_priorities[1], p_retries[1], p_on_lost[1], p_delays[1], p_not_before[1], p_prompts[1], p_metadata[1],
        p_labels[1], p_bodies[1], p_envs[1],
      p_after[1]) s;
    RETURN;
  END IF;
  IF v_many > v_room OR coalesce(array_to_string(p_after, ''), '') <> ''
     OR v_many > (SELECT count(DISTINCT @schema@.ident_of(u.id, u.key)) FROM unnest(p_ids, p_keys) AS u(id, key)) THEN
    -- In one order, whatever this call asks for.
    PERFORM FROM @schema@.task t WHERE t.id = ANY (SELECT a::bigint FROM unnest(p_after) AS u(ids)
      CROSS JOIN unnest(string_to_array(nullif(u.ids, ''), ',')) AS a) ORDER BY t.id FOR NO KEY UPDATE;
    RETURN QUERY SELECT s.* FROM unnest(p_ids, p_keys, p_agents, p_groups, p_needs, p_own, p_priorities, p_retries,
      p_on_lost, p_delays,
        p_not_before, p_prompts, p_metadata, p_labels, p_bodies, p_envs, p_after) WITH ORDINALITY
      AS a(id, key, agent, grp, needs, own, priority, retries, on_lost, delay, not_before, prompt, metadata, labels,
        body, env, after, place)
    CROSS JOIN LATERAL @schema@.submit_one(a.place::integer, p_worker, v_name, v_room - a.place + 1, a.id, a.key,
      a.agent, a.grp, a.needs, a.own,
      a.priority, a.retries, a.on_lost, a.delay, a.not_before, a.prompt, a.metadata, a.labels, a.body, a.env, a.after) s
    ORDER BY a.place;
    RETURN;
  END IF;
  FOR v_turn IN 1..2 LOOP
    RETURN QUERY
    WITH asked AS MATERIALIZED (
      SELECT a.place, a.priority, a.retries, a.on_lost, a.prompt, a.metadata, a.labels, a.body, a.env, a.key,
        @schema@.ident_of(a.id, a.key) AS ident, l.id AS lane, l.agent_json,
        CASE WHEN a.delay > 0 THEN v_now + @schema@.span(a.delay)
             WHEN a.not_before IS NOT NULL THEN timestamptz 'epoch' + @schema@.span(a.not_before) END AS due
      FROM unnest(p_ids, p_keys, p_agents, p_groups, p_needs, p_own, p_priorities, p_retries, p_on_lost, p_delays,
        p_not_before, p_prompts,
        p_metadata, p_labels, p_bodies, p_envs) WITH ORDINALITY
        AS a(id, key, agent, grp, needs, own, priority, retries, on_lost, delay, not_before, prompt, metadata, labels,
          body, env, place)
      LEFT JOIN @schema@.lane l ON l.agent = a.agent AND l.grp = a.grp AND l.retired_at IS NULL
        AND l.needs = CASE WHEN a.needs = '' THEN '{}'::text[] ELSE @schema@.needs_of(a.needs) END
        AND l.submitter = CASE WHEN a.own THEN v_name ELSE '' END
      ORDER BY a.place),  -- ids are given in that order
    put AS (
      INSERT INTO @schema@.request AS r(task, ident, key, submitted_by, prompt, labels, metadata, env, body)
      SELECT coalesce((SELECT o.task FROM @schema@.request o WHERE a.key IS NOT NULL AND o.ident = a.ident),
        nextval('@schema@.task_id')),
        a.ident, a.key, session_user, a.prompt, a.labels, a.metadata, a.env, a.body FROM asked a
      WHERE NOT EXISTS (SELECT FROM asked o WHERE o.lane IS NULL)
      -- written to, so that this answer waits for the standby, too
      ON CONFLICT (ident) DO UPDATE SET touched = r.touched + 1
      RETURNING r.task, r.ident, r.touched = 0 AS fresh, CASE WHEN r.touched > 0
        THEN coalesce(r.key_body, r.body) END AS body),
    kept AS (
      INSERT INTO @schema@.task(id, rank, created_at, lane, retries, state, on_lost, has_env, not_before, due)
      SELECT p.task, ~a.priority, v_now, a.lane, coalesce(a.retries, 0), CASE WHEN a.due > v_now THEN 0 ELSE 1 END,
        coalesce(a.on_lost, 0), a.env IS NOT NULL, a.due, a.due
      FROM asked a JOIN put p ON p.ident = a.ident WHERE p.fresh),
    told AS (
      INSERT INTO @schema@.event(id, task, at, arrived_ms, becomes, kind, params)
      SELECT nextval('@schema@.event_id'), p.task, v_now, @schema@.ms(v_now), 0, 'taskQueued',
        @schema@.task_params(p.task, 0::smallint, a.agent_json, 0, 0, ',"createdAt":"' || @schema@.iso(v_now) || '"')
      FROM asked a JOIN put p ON p.ident = a.ident WHERE p.fresh ORDER BY p.task)
    SELECT a.place::integer, p.task, CASE WHEN p.fresh THEN 0::smallint
        ELSE (SELECT @schema@.world(t.state, t.announced) FROM @schema@.task t WHERE t.id = p.task) END,
      p.fresh, p.body, NULL::text, a.lane
    FROM put p JOIN asked a ON a.ident = p.ident ORDER BY a.place;
    GET DIAGNOSTICS v_done = ROW_COUNT;
    EXIT WHEN v_done > 0;
    PERFORM @schema@.make_lanes(p_worker, p_agents, p_groups, p_needs, p_own);
  END LOOP;
END $$;

-- One task, with all that can be in its way.
CREATE FUNCTION @schema@.submit_one(p_place integer, p_worker bigint, p_name text, p_room bigint, p_id uuid,
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
  v_lane integer;
  v_agent text;
  v_needs text[] := '{}';
BEGIN
  IF p_key IS NOT NULL OR p_room <= 0 THEN
    -- Written to, so that this answer waits for the standby, too.
    UPDATE @schema@.request r SET touched = r.touched + 1 WHERE r.ident = v_ident
    RETURNING r.task, coalesce(r.key_body, r.body) INTO v_id, v_body;
    IF FOUND THEN
      RETURN QUERY SELECT p_place, v_id, @schema@.world(t.state, t.announced), false, v_body, NULL::text, t.lane
                   FROM @schema@.task t WHERE t.id = v_id;
      RETURN;
    ELSIF p_room <= 0 THEN
      RETURN QUERY SELECT p_place, NULL::bigint, NULL::smallint, false, NULL::text, 'full'::text, NULL::integer;
      RETURN;
    END IF;
  END IF;
  IF p_after <> '' THEN
    v_after := ARRAY(SELECT DISTINCT a::bigint FROM unnest(string_to_array(p_after, ',')) AS a ORDER BY 1);
  END IF;
  IF p_needs <> '' THEN
    v_needs := @schema@.needs_of(p_needs);
  END IF;
  FOR v_turn IN 1..2 LOOP
    SELECT l.id, l.agent_json INTO v_lane, v_agent FROM @schema@.lane l WHERE l.agent = p_agent AND l.grp = p_group
      AND l.needs = v_needs
      AND l.submitter = CASE WHEN p_own THEN p_name ELSE '' END AND l.retired_at IS NULL;
    EXIT WHEN FOUND;
    PERFORM @schema@.make_lanes(p_worker, ARRAY[p_agent], ARRAY[p_group], ARRAY[p_needs], ARRAY[p_own]);
  END LOOP;
  -- They are locked: one that ends while this is written is never missed.
  IF cardinality(v_after) > 0 THEN
    PERFORM FROM @schema@.task t WHERE t.id = ANY (v_after) ORDER BY t.id FOR NO KEY UPDATE;
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
  RETURNING r.task, r.touched = 0, coalesce(r.key_body, r.body) INTO v_id, v_is_fresh, v_body;
  IF NOT v_is_fresh THEN  -- somebody was quicker with the same key
    RETURN QUERY SELECT p_place, v_id, @schema@.world(t.state, t.announced), false, v_body, NULL::text, t.lane
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
