-- Report: starts, output and ends of attempts, and the next claims, in one commit.

-- What becomes of an attempt's task: 1 put back, 2 cancelled, 3 ended by a stop, 4 queued again and not counted (its
-- agent is held, or it was lost with its keeper or its worker's lease), 5 completed, 6 tried again, 7 failed. What was told to
-- have begun is not put back: it is lost. Three lost attempts are enough.
CREATE FUNCTION @schema@.verdict(p_flags integer, p_cancelling boolean, p_hold bigint, p_ok boolean, p_retry bigint,
  p_counted integer,
                                 p_retries integer, p_announced boolean, p_lost integer)
RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_cancelling THEN 2 WHEN p_flags & 4 <> 0 AND NOT p_announced THEN 1 WHEN p_flags & 1 <> 0 THEN 3
    WHEN p_hold IS NOT NULL THEN 4 WHEN p_flags & 8 <> 0 THEN CASE WHEN p_lost < 2 THEN 4 ELSE 7 END
              WHEN p_ok AND p_flags & 4 = 0 THEN 5 WHEN p_retry IS NOT NULL AND p_counted <= p_retries THEN 6 ELSE 7 END
$$;

-- `p_told_timeline`: of the server that the worker had told what it has when it made this report. One that was made
-- before, and comes late through a pooler, may tell of output that this server lacks.
CREATE FUNCTION @schema@.report_v1(p_worker bigint, p_incarnation uuid, p_starts json, p_tasks bigint[],
  p_fences bigint[], p_ok boolean[],
  p_codes integer[], p_signals text[], p_reasons smallint[], p_messages text[], p_pids integer[],
    p_started_ago bigint[],
  p_ended_ago bigint[], p_cpu_us bigint[], p_memory bigint[], p_output_bytes bigint[], p_retry_ms bigint[],
    p_hold_ms bigint[],
  p_hold_texts text[], p_flags integer[], p_results bytea[], p_output json, p_most integer, p_turns text[],
    p_closed text[],
  p_limits json, p_behind json DEFAULT NULL, p_told_timeline integer DEFAULT NULL)
RETURNS TABLE(what text, id bigint, fence bigint, attempt integer, agent text, grp text, on_lost smallint,
  priority bigint,
              retries integer, spared integer, body text, env text, cancelling boolean, lane integer,
              needs text, submitter text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '5s' SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_many integer := coalesce(cardinality(p_tasks), 0);
  v_seen bigint[];  -- NULL, and not empty: each '{}' is read anew in every call
  v_done bigint[];
  v_failed bigint[];
  v_env bigint[];
  v_after bigint[];
  v_ready integer[];
  v_picked bigint[];
  v_lanes integer[];
  v_lanes_to integer;
  v_is_simple boolean;
  v_is_usual boolean;  -- one lane, and nothing but order decides
  v_is_told boolean;  -- the server was told what this worker has
  v_is_durable boolean;
  v_walked bigint;
  e record;
  d @schema@.task;
BEGIN
  SELECT w.lanes, w.lanes_to, w.state = 0 AND NOT w.recovering AND w.groups = 1 AND cardinality(w.lanes) = 1,
    w.told_timeline IS NOT DISTINCT FROM @schema@.server_timeline()
      AND w.told_timeline = coalesce(p_told_timeline, w.told_timeline), current_setting('synchronous_commit') = 'on'
      AND current_setting('transaction_isolation') = 'read committed'
  INTO v_lanes, v_lanes_to, v_is_usual, v_is_told, v_is_durable
  FROM @schema@.worker w WHERE w.id = p_worker AND w.incarnation = p_incarnation AND w.state <> 3;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  ELSIF NOT v_is_told THEN
    PERFORM @schema@.refuse_untold();
  ELSIF NOT v_is_durable THEN
    PERFORM @schema@.make_durable();
  END IF;
  IF p_starts IS NOT NULL THEN
    RETURN QUERY SELECT s.what, s.id, s.fence, NULL::integer, NULL::text, NULL::text, NULL::smallint, NULL::bigint,
      NULL::integer,
      NULL::integer, NULL::text, NULL::text, NULL::boolean, NULL::integer, NULL::text, NULL::text
        FROM @schema@.start_some(p_worker, p_starts, v_now) s;
  END IF;
  IF p_output IS NOT NULL THEN
    PERFORM @schema@.keep_output(p_worker, p_output);
  END IF;
  IF v_many > 0 THEN
    IF cardinality(array_remove(p_hold_ms, NULL)) > 0 THEN
      PERFORM @schema@.hold_agents(p_worker, p_tasks, p_fences, p_hold_ms, p_hold_texts, p_flags, v_now,
        CASE WHEN p_most > 0 THEN p_limits END);
    END IF;
    IF v_many = 1 AND p_ok[1] AND p_hold_ms[1] IS NULL AND coalesce(p_flags[1], 0) & 13 = 0
      AND p_output_bytes[1] = 0 AND p_started_ago[1] IS NOT NULL THEN
      -- The usual end, by plain statements. What it does not find goes the long way. It is not before its start
      -- nor before its task, whatever became of the worker's clock.
      UPDATE @schema@.task t SET state = 3,
        completed_at = greatest(t.created_at, coalesce(t.started_at, v_now - @schema@.span(p_started_ago[1])),
          v_now - @schema@.span(coalesce(p_ended_ago[1], 0))),
        started_at = coalesce(t.started_at, v_now - @schema@.span(p_started_ago[1])), pid = coalesce(t.pid, p_pids[1]),
        exit_code = p_codes[1], signal = p_signals[1], retry_at = NULL, due = NULL,
        cpu_us = CASE WHEN p_cpu_us[1] IS NULL THEN t.cpu_us ELSE coalesce(t.cpu_us, 0) + p_cpu_us[1] END,
        max_memory = CASE WHEN p_cpu_us[1] IS NULL THEN t.max_memory ELSE greatest(t.max_memory, p_memory[1], 0) END,
        output_bytes = CASE WHEN p_cpu_us[1] IS NULL THEN t.output_bytes ELSE coalesce(t.output_bytes, 0) END
      WHERE t.id = p_tasks[1] AND t.state + 0 = 2 AND t.worker = p_worker AND t.fence = p_fences[1] AND NOT t.cancelling
        AND NOT t.has_dependents AND NOT t.has_env AND NOT t.has_after
        AND t.attempts = 1  -- else there may be output of earlier ones
      RETURNING t.* INTO d;
      IF FOUND THEN
        v_seen := p_tasks;
        IF octet_length(p_results[1]) > 0 THEN
          INSERT INTO @schema@.result AS r(task, bytes) VALUES (d.id, p_results[1])
          ON CONFLICT (task) DO UPDATE SET bytes = excluded.bytes;
        END IF;
        INSERT INTO @schema@.event(id, task, at, was, becomes, stored, kind, params)
        SELECT nextval('@schema@.event_id'), d.id, v_now, k.world - 1, k.world, CASE WHEN k.world = 2 THEN d.stored END,
          CASE WHEN k.world = 1 THEN 'taskStarted' ELSE 'taskCompleted' END,
          @schema@.task_params(d.id, k.world, l.agent_json, d.attempts, d.spared + d.lost,
            @schema@.start_params(d.started_at, d.pid) || CASE WHEN k.world = 1 THEN '' ELSE
              @schema@.end_params(d.completed_at, d.exit_code, d.signal, NULL, NULL, d.cpu_us, d.max_memory,
                d.output_bytes) END)
        FROM (VALUES (1::smallint), (2::smallint)) AS k(world)
        CROSS JOIN LATERAL (SELECT o.agent_json FROM @schema@.lane o WHERE o.id = d.lane OFFSET 0) l
        WHERE k.world = 2 OR (NOT d.announced AND p_started_ago[1] IS NOT NULL);
        what := 'end';
        id := d.id;
        fence := d.fence;
        attempt := 2;
        RETURN NEXT;
      END IF;
    END IF;
    IF v_seen IS NULL THEN
      -- No join: a plan that was made while the queue was empty would read all of it. A fence is one attempt's.
      FOR e IN
        WITH ended AS (
          UPDATE @schema@.task t SET (state, attempts, spared, lost, started_at, pid, completed_at, exit_code, signal,
              error_reason, error_message, retry_at, due, cpu_us, max_memory, output_bytes, stored, cancelling) = (
            SELECT (ARRAY[CASE WHEN a.retry > 0 THEN 0 ELSE 1 END, 5, 4, 1, 3, 0, 4])[a.v],
              t.attempts - CASE WHEN a.v = 1 OR (a.v = 2 AND p_flags[a.i] & 4 <> 0 AND NOT t.announced) THEN 1 ELSE 0 END,
              t.spared + CASE WHEN a.v = 4 AND NOT a.is_lost THEN 1 ELSE 0 END,
              t.lost + CASE WHEN a.v IN (4, 7) AND a.is_lost THEN 1 ELSE 0 END,
              CASE WHEN a.is_end THEN coalesce(t.started_at, v_now - @schema@.span(p_started_ago[a.i])) END,
              CASE WHEN a.is_end THEN coalesce(t.pid, p_pids[a.i]) END,
              CASE WHEN a.is_end THEN greatest(t.created_at, coalesce(t.started_at, v_now - @schema@.span(p_started_ago[a.i])),
                v_now - @schema@.span(coalesce(p_ended_ago[a.i], 0))) END,
              CASE WHEN a.is_end THEN p_codes[a.i] END, CASE WHEN a.is_end THEN p_signals[a.i] END,
              CASE WHEN a.v = 7 AND a.is_lost THEN 4
                WHEN a.v IN (3, 7) THEN coalesce(p_reasons[a.i], CASE WHEN p_flags[a.i] & 4 <> 0 THEN 4 ELSE 0 END) END,
              CASE WHEN a.v = 7 AND a.is_lost THEN @schema@.thrice_lost()
                WHEN a.v IN (3, 7) THEN coalesce(p_messages[a.i],
                CASE WHEN p_flags[a.i] & 4 <> 0 THEN 'its worker has lost it' ELSE '' END) END,
              CASE WHEN a.v = 6 THEN v_now + @schema@.span(a.retry) END,
              CASE WHEN a.v = 6 OR (a.v = 1 AND a.retry > 0)
                THEN greatest(t.not_before, v_now + @schema@.span(a.retry)) END,
              CASE WHEN a.cpu IS NULL THEN t.cpu_us ELSE coalesce(t.cpu_us, 0) + a.cpu END,
              CASE WHEN a.cpu IS NULL THEN t.max_memory ELSE greatest(t.max_memory, p_memory[a.i], 0) END,
              CASE WHEN a.cpu IS NULL THEN t.output_bytes
                ELSE coalesce(t.output_bytes, 0) + coalesce(p_output_bytes[a.i], 0) END,
              CASE WHEN a.is_end AND (coalesce(p_output_bytes[a.i], 1) > 0 OR t.attempts > 1) THEN coalesce(
                  (SELECT sum(octet_length(o.bytes)) FROM @schema@.output o WHERE o.task = t.id), 0)
                ELSE t.stored END, false
            FROM (SELECT y.*, y.v NOT IN (1, 4, 6) AS is_end FROM (
              SELECT x.i, p_hold_ms[x.i] IS NULL AND coalesce(p_flags[x.i], 0) & 8 <> 0 AS is_lost, p_retry_ms[x.i] AS retry, p_cpu_us[x.i] AS cpu,
                @schema@.verdict(coalesce(p_flags[x.i], 0), t.cancelling, p_hold_ms[x.i], coalesce(p_ok[x.i], false),
                  p_retry_ms[x.i], t.attempts - t.spared - t.lost, t.retries, t.announced, t.lost) AS v
              FROM (SELECT array_position(p_fences, t.fence) AS i OFFSET 0) x OFFSET 0) y) a)
          WHERE t.id = ANY (p_tasks) AND t.state + 0 = 2 AND t.worker = p_worker
            AND t.id = p_tasks[array_position(p_fences, t.fence)]
            AND (NOT t.cancelling OR coalesce(p_flags[array_position(p_fences, t.fence)], 0) & 6 <> 0)
          RETURNING t.id, t.fence, t.state, t.attempts, t.spared + t.lost AS spared, t.lane, t.announced, t.started_at,
            t.pid, t.completed_at, t.exit_code, t.signal, t.error_reason, t.error_message, t.retry_at, t.cpu_us,
            t.max_memory, t.output_bytes, t.stored, t.has_dependents, t.has_env, t.has_after,
            array_position(p_fences, t.fence) AS i),
        results AS (
          INSERT INTO @schema@.result AS r(task, bytes)
          SELECT d.id, p_results[d.i] FROM ended d WHERE d.state >= 3 AND octet_length(p_results[d.i]) > 0
          ON CONFLICT (task) DO UPDATE SET bytes = excluded.bytes),
        seen AS (
          SELECT d.*, coalesce(p_flags[d.i], 0) & 4 <> 0 AND NOT d.announced AS is_put_back, p_pids[d.i] AS begun_pid,
            v_now - @schema@.span(p_started_ago[d.i]) AS begun_at FROM ended d),
        told_of AS (
          INSERT INTO @schema@.event(id, task, at, was, becomes, stored, kind, params)
          SELECT nextval('@schema@.event_id'), d.id, v_now, x.was, x.becomes, x.stored,
            @schema@.state_event(x.becomes),
            @schema@.task_params(d.id, x.becomes, l.agent_json, d.attempts, d.spared, x.more)
          FROM seen d
          CROSS JOIN LATERAL (SELECT o.agent_json FROM @schema@.lane o WHERE o.id = d.lane OFFSET 0) l
          CROSS JOIN LATERAL (
            SELECT 0::smallint AS was, 1::smallint AS becomes, NULL::bigint AS stored,
              @schema@.start_params(d.begun_at, d.begun_pid) AS more
            WHERE NOT d.announced AND d.begun_at IS NOT NULL AND NOT d.is_put_back
            UNION ALL
            SELECT (CASE WHEN d.announced OR (d.begun_at IS NOT NULL AND NOT d.is_put_back) THEN 1
              ELSE 0 END)::smallint,
              @schema@.world(d.state, false), CASE WHEN d.state >= 3 THEN d.stored END,
              CASE WHEN d.state < 3 THEN ',"retryAt":"' || @schema@.iso(d.retry_at) || '"' ELSE
                concat(@schema@.start_params(d.started_at, d.pid), @schema@.end_params(d.completed_at, d.exit_code,
                  d.signal, d.error_reason, d.error_message, d.cpu_us, d.max_memory, d.output_bytes)) END
            WHERE NOT d.is_put_back OR d.state >= 3) x)
        SELECT d.id, d.fence, d.state, d.has_dependents, d.has_env, d.has_after, d.is_put_back FROM seen d
      LOOP
        what := 'end';
        id := e.id;
        fence := e.fence;
        attempt := CASE WHEN e.state >= 3 THEN e.state - 1 ELSE 0 END;
        RETURN NEXT;
        v_seen := v_seen || e.id;
        IF e.has_dependents AND e.state = 3 THEN
          v_done := v_done || e.id;
        ELSIF e.has_dependents AND e.state > 3 THEN
          v_failed := v_failed || e.id;
        END IF;
        IF e.has_env AND e.state >= 3 THEN
          v_env := v_env || e.id;
        END IF;
        IF e.has_after AND NOT e.is_put_back THEN
          v_after := v_after || e.id;
        END IF;
      END LOOP;
    END IF;
    IF cardinality(v_env) > 0 THEN
      UPDATE @schema@.request r SET env = NULL WHERE r.task = ANY (v_env);
    END IF;
    IF cardinality(v_after) > 0 THEN
      PERFORM @schema@.pass_after(v_after);
    END IF;
    IF cardinality(v_done) > 0 OR cardinality(v_failed) > 0 THEN
      v_ready := @schema@.settle(v_done, v_failed);
    END IF;
    IF coalesce(cardinality(v_seen), 0) < v_many THEN
      RETURN QUERY SELECT s.what, s.id, s.fence, s.attempt, NULL::text, NULL::text, NULL::smallint, NULL::bigint,
        NULL::integer,
        NULL::integer, NULL::text, NULL::text, NULL::boolean, NULL::integer, NULL::text, NULL::text
      FROM @schema@.not_running(p_worker, coalesce(v_seen, '{}'), p_tasks, p_fences, p_ok, p_codes, p_signals, p_ended_ago, v_now) s;
    END IF;
    IF cardinality(v_ready) > 0 THEN
      RETURN QUERY SELECT 'ready', NULL::bigint, NULL::bigint, count(*)::integer, NULL::text, NULL::text,
        NULL::smallint, NULL::bigint, NULL::integer,
        NULL::integer, NULL::text, NULL::text, NULL::boolean, u.lane, NULL::text, NULL::text
      FROM unnest(v_ready) AS u(lane) GROUP BY u.lane;
    END IF;
  END IF;
  IF p_most > 0 THEN
    v_walked := pg_stat_get_xact_tuples_returned('@schema@.task_ready'::regclass);
    -- What stand() finds out, for the usual case: plain statements, as in submit_v1. Now, and not before the ends: one of
    -- them may have closed a gate.
    IF v_is_usual AND p_behind IS NULL AND coalesce(cardinality(p_closed), 0) = 0
      AND (p_limits IS NULL OR p_limits::text = '{}') THEN
      PERFORM FROM @schema@.lane l WHERE l.id > v_lanes_to;
      v_is_usual := NOT FOUND;
      PERFORM FROM @schema@.gate g WHERE g.paused IS NOT NULL OR g.held_until IS NOT NULL;
      v_is_usual := v_is_usual AND NOT FOUND;
    ELSE
      v_is_usual := false;
    END IF;
    IF NOT v_is_usual THEN
      SELECT s.lanes, s.is_simple INTO v_lanes, v_is_simple
      FROM @schema@.stand(p_worker, p_incarnation, p_closed, p_limits, p_behind) s;
    END IF;
  END IF;
  IF p_most > 0 AND v_is_usual THEN
    -- Locked by a statement of its own: the next one sees what was edited before that.
    v_picked := ARRAY(SELECT r.id FROM @schema@.task r WHERE r.lane = v_lanes[1] AND r.state = 1
                      ORDER BY r.rank, r.id LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  IF cardinality(v_picked) > 0 THEN
    RETURN QUERY
    WITH got AS (
      UPDATE @schema@.task t SET state = 2, worker = p_worker, fence = nextval('@schema@.fence'),
        attempts = t.attempts + 1, announced = false, retry_at = NULL, due = NULL
      WHERE t.id = ANY (v_picked)
      RETURNING t.id, t.fence, t.attempts, t.on_lost, t.rank, t.retries, t.spared, t.lost, t.lane, t.cancelling)
    SELECT 'claim', g.id, g.fence, g.attempts, l.agent, l.grp, g.on_lost, ~g.rank, g.retries, g.spared + g.lost,
      q.body, q.env,
      g.cancelling, g.lane, l.needs, l.submitter
    FROM got g
    CROSS JOIN LATERAL (SELECT o.body, o.env FROM @schema@.request o WHERE o.task = g.id OFFSET 0) q
    CROSS JOIN LATERAL (SELECT o.agent, o.grp, array_to_string(o.needs, E'\x1f') AS needs, o.submitter
      FROM @schema@.lane o WHERE o.id = g.lane OFFSET 0) l;
  ELSIF p_most > 0 AND NOT v_is_usual AND cardinality(v_lanes) > 0 THEN
    RETURN QUERY SELECT 'claim', k.* FROM @schema@.take(p_worker, v_lanes, v_is_simple, p_most, p_turns, p_closed,
      p_limits, p_behind) k;
  END IF;
  -- How many entries of its index this look has walked, if they are far more than it needs: an old snapshot keeps those
  -- of tasks that are gone. It is for the worker to look behind them.
  IF p_most > 0 AND p_behind IS NULL THEN
    v_walked := pg_stat_get_xact_tuples_returned('@schema@.task_ready'::regclass) - v_walked;
    IF v_walked > 2000 + (p_most + 20) * cardinality(v_lanes) THEN
      RETURN QUERY SELECT 'slow', NULL::bigint, v_walked, NULL::integer, NULL::text, NULL::text, NULL::smallint,
        NULL::bigint, NULL::integer, NULL::integer, NULL::text, NULL::text, NULL::boolean, NULL::integer, NULL::text,
        NULL::text;
    END IF;
  END IF;
END $$;

-- They have begun: they are past what they came after.
CREATE FUNCTION @schema@.pass_after(p_tasks bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM @schema@.after a WHERE a.task = ANY (p_tasks);
  UPDATE @schema@.task t SET has_after = false WHERE t.id = ANY (p_tasks);
END $$;

-- `p_starts`: `[{"task":,"fence":,"pid":,"ago":}]`. One that is told again changes nothing, and with `p_touches` waits for the
-- standby none the less.
CREATE FUNCTION @schema@.start_some(p_worker bigint, p_starts json, p_now timestamptz, p_touches boolean DEFAULT true)
RETURNS TABLE(what text, id bigint, fence bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_tasks bigint[];
  v_fences bigint[];
  v_pids integer[];
  v_agos bigint[];
  v_after bigint[];
  v_many bigint;
BEGIN
  SELECT array_agg(s.task), array_agg(s.fence), array_agg(s.pid), array_agg(coalesce(s.ago, 0))
  INTO v_tasks, v_fences, v_pids, v_agos
  FROM json_to_recordset(p_starts) AS s(task bigint, fence bigint, pid integer, ago bigint);
  WITH begun AS (
    UPDATE @schema@.task t SET announced = true, pid = v_pids[array_position(v_fences, t.fence)],
      started_at = p_now - @schema@.span(v_agos[array_position(v_fences, t.fence)])
    WHERE t.id = ANY (v_tasks) AND t.state + 0 = 2 AND t.worker = p_worker AND NOT t.announced
      AND t.id = v_tasks[array_position(v_fences, t.fence)]
    RETURNING t.id, t.lane, t.attempts, t.spared + t.lost AS spared, t.started_at, t.pid, t.has_after),
  told_of AS (
    INSERT INTO @schema@.event(id, task, at, was, becomes, kind, params)
    SELECT nextval('@schema@.event_id'), b.id, p_now, 0, 1, 'taskStarted',
      @schema@.task_params(b.id, 1::smallint, l.agent_json, b.attempts, b.spared,
        @schema@.start_params(b.started_at, b.pid))
    FROM begun b JOIN @schema@.lane l ON l.id = b.lane)
  SELECT array_agg(b.id) FILTER (WHERE b.has_after), count(*) INTO v_after, v_many FROM begun b;
  IF v_after IS NOT NULL THEN
    PERFORM @schema@.pass_after(v_after);
  END IF;
  IF p_touches AND v_many < cardinality(v_tasks) THEN
    PERFORM @schema@.touch(p_worker, v_tasks, v_fences);
  END IF;
  RETURN QUERY
  SELECT CASE WHEN t.id IS NULL THEN 'fenced' ELSE 'start' END, s.task, s.fence
  FROM unnest(v_tasks, v_fences) AS s(task, fence)
  LEFT JOIN LATERAL (SELECT o.id FROM @schema@.task o WHERE o.id = s.task AND o.state + 0 = 2 AND o.worker = p_worker
                       AND o.fence = s.fence OFFSET 0) t ON true;
END $$;

-- What was told before is written to, so that the answer to who tells it again waits for the standby, too.
CREATE FUNCTION @schema@.touch(p_worker bigint, p_tasks bigint[], p_fences bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM @schema@.task t WHERE t.id = ANY (p_tasks) AND t.worker = p_worker AND t.fence = ANY (p_fences)
    ORDER BY t.id FOR NO KEY UPDATE;
END $$;

-- Ends that changed nothing: what was told before is said again, what is cancelled waits for its tree, all else is fenced.
-- The end of one that is lost for good is kept, unless it is the very end that is told again.
CREATE FUNCTION @schema@.not_running(p_worker bigint, p_seen bigint[], p_tasks bigint[], p_fences bigint[],
  p_ok boolean[], p_codes integer[],
                                     p_signals text[], p_ended_ago bigint[], p_now timestamptz)
RETURNS TABLE(what text, id bigint, fence bigint, attempt integer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM @schema@.touch(p_worker, p_tasks, p_fences);
  UPDATE @schema@.task t SET late = concat('{"exitCode":', coalesce(a.code::text, 'null'), ',"signal":',
    @schema@.quoted(a.sig),
    ',"completedAt":"', @schema@.iso(p_now - @schema@.span(coalesce(a.ended_ago, 0))), '"}')
  FROM unnest(p_tasks, p_fences, p_codes, p_signals, p_ended_ago) AS a(task, fence, code, sig, ended_ago)
  WHERE t.id = a.task AND t.id = ANY (p_tasks) AND t.id <> ALL (p_seen) AND t.state = 4 AND t.error_reason = 4
    AND t.fence = a.fence
    AND t.late IS NULL AND (t.worker <> p_worker OR (t.exit_code, t.signal) IS DISTINCT FROM (a.code, a.sig))
    AND (t.worker = p_worker OR EXISTS (  -- who was given up has come back as another worker of the same name
      SELECT FROM @schema@.worker o JOIN @schema@.worker n ON n.name = o.name WHERE o.id = t.worker
        AND n.id = p_worker));
  RETURN QUERY
  SELECT CASE WHEN t.id IS NULL OR (t.state = 4 AND t.error_reason = 4 AND (t.exit_code, t.signal) IS DISTINCT FROM (a.code, a.sig))
    THEN 'fenced' ELSE 'end' END, a.task, a.fence, @schema@.world(t.state, t.state = 2)::integer
  FROM unnest(p_tasks, p_fences, p_codes, p_signals) AS a(task, fence, code, sig)
  LEFT JOIN LATERAL (SELECT o.id, o.state, o.error_reason, o.exit_code, o.signal FROM @schema@.task o WHERE o.id = a.task
                       AND o.worker = p_worker AND o.fence = a.fence OFFSET 0) t ON true
  WHERE a.task <> ALL (p_seen);
END $$;

-- The agents of these attempts have met a usage limit. All gates are locked in order, since a claim may follow, and those that
-- are missing made before that, also the claim's: whoever makes one has it. Not that of edits, which is locked before tasks, nor
-- that of sweeps.
CREATE FUNCTION @schema@.hold_agents(p_worker bigint, p_tasks bigint[], p_fences bigint[], p_hold_ms bigint[],
  p_texts text[], p_flags integer[],
                                     p_now timestamptz, p_limits json)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_agents text[] := ARRAY(SELECT l.agent FROM unnest(p_tasks, p_fences, p_hold_ms, p_flags) AS a(task, fence, hold, flags)
    JOIN @schema@.task t ON t.id = a.task JOIN @schema@.lane l ON l.id = t.lane
    WHERE a.hold IS NOT NULL AND t.worker = p_worker AND t.fence = a.fence);
  h record;
BEGIN
  IF cardinality(v_agents) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO @schema@.gate(kind, name) SELECT m.kind, m.name FROM (
      SELECT 'agent' AS kind, u.name FROM unnest(v_agents) AS u(name)
      UNION SELECT 'agent', a.key FROM json_each_text(p_limits -> 'agents') a
      UNION SELECT 'group', g.key FROM json_each_text(p_limits -> 'groups') g) m
    ORDER BY m.kind, m.name ON CONFLICT DO NOTHING;
  PERFORM FROM @schema@.gate g WHERE g.kind NOT IN ('edit', 'sweep') ORDER BY g.kind, g.name FOR NO KEY UPDATE;
  FOR h IN
    SELECT a.task, l.agent, l.agent_json, p_now + @schema@.span(a.hold) AS until, coalesce(a.text, '') AS text
    FROM unnest(p_tasks, p_fences, p_hold_ms, p_texts, p_flags) AS a(task, fence, hold, text, flags)
    JOIN @schema@.task t ON t.id = a.task JOIN @schema@.lane l ON l.id = t.lane
    WHERE a.hold IS NOT NULL AND coalesce(a.flags, 0) & 5 = 0 AND t.state = 2 AND t.worker = p_worker
      AND t.fence = a.fence AND NOT t.cancelling
    ORDER BY l.agent, a.hold DESC
  LOOP
    UPDATE @schema@.gate g SET held_until = h.until, held_since = p_now, held_task = h.task, held_text = h.text,
      version = g.version + 1
    WHERE g.kind = 'agent' AND g.name = h.agent AND (g.held_until IS NULL OR g.held_until < h.until - interval '1 s');
    IF FOUND THEN
      PERFORM @schema@.tell('agentHeld', concat('{"agent":', h.agent_json, ',"until":"', @schema@.iso(h.until),
        '","taskId":"task-', h.task,
                                                '","text":', @schema@.quoted(h.text), '}'));
    END IF;
  END LOOP;
END $$;

-- `[{"task":,"fence":,"attempt":,"offset":,"bytes":base64,"marks":text,"total":,"dropped":[[from,to]],"last":bool}]`
CREATE FUNCTION @schema@.keep_output(p_worker bigint, p_output json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  o record;
  v_tasks bigint[];
BEGIN
  v_tasks := ARRAY(SELECT DISTINCT p.task FROM json_to_recordset(p_output) AS p(task bigint) ORDER BY 1);
  PERFORM FROM @schema@.task t WHERE t.id = ANY (v_tasks) ORDER BY t.id FOR NO KEY UPDATE;
  FOR o IN
    SELECT p.* FROM json_to_recordset(p_output) AS p(task bigint, fence bigint, attempt integer, "offset" bigint,
      bytes text, marks text, total bigint, dropped json, last boolean)
  LOOP
    CONTINUE WHEN NOT EXISTS (SELECT FROM @schema@.task t WHERE t.id = o.task AND t.state + 0 = 2
      AND t.worker = p_worker AND t.fence = o.fence AND t.attempts = o.attempt);
    IF o."offset" < 0 OR octet_length(o.bytes) > 87384 THEN  -- 64 KiB: readers look no further back
      RAISE EXCEPTION 'no piece of output' USING ERRCODE = '22023';
    END IF;
    IF o.bytes <> '' THEN
      INSERT INTO @schema@.output AS k(task, attempt, start, bytes, marks)
      VALUES (o.task, o.attempt, o."offset", decode(o.bytes, 'base64'), o.marks)
      ON CONFLICT (task, attempt, start) DO UPDATE SET bytes = excluded.bytes, marks = excluded.marks
      WHERE octet_length(k.bytes) < octet_length(excluded.bytes);
    END IF;
    INSERT INTO @schema@.output_state AS s(task, attempt, total, dropped, last)
    VALUES (o.task, o.attempt, coalesce(o.total, 0), coalesce(o.dropped::text, '[]'), coalesce(o.last, false))
    ON CONFLICT (task, attempt) DO UPDATE SET total = greatest(s.total, excluded.total),
      dropped = CASE WHEN o.dropped IS NULL THEN s.dropped ELSE excluded.dropped END, last = s.last OR excluded.last;
    IF o.dropped IS NOT NULL THEN
      DELETE FROM @schema@.output k USING json_array_elements(o.dropped) AS d
      WHERE k.task = o.task AND k.attempt = o.attempt AND k.start >= (d ->> 0)::bigint
        AND k.start + octet_length(k.bytes) <= (d ->> 1)::bigint;
    END IF;
  END LOOP;
END $$;
