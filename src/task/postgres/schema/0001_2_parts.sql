-- What the functions of the protocol are made of. Nobody but them may call these. Those in SQL are expressions, which the
-- planner puts in place; the others are for what is rare.

CREATE FUNCTION @schema@.iso(p_time timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.to_char(p_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE FUNCTION @schema@.ms(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.floor(pg_catalog.date_part('epoch', p_time) * 1000)::bigint
$$;

CREATE FUNCTION @schema@.span(p_ms bigint) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
  SELECT p_ms * interval '1 millisecond'
$$;

-- The state as the world sees it: one that is claimed and has not started is still queued.
CREATE FUNCTION @schema@.world(p_state smallint, p_announced boolean) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
  SELECT (CASE WHEN p_state >= 3 THEN p_state - 1 WHEN p_state = 2 AND p_announced THEN 1 ELSE 0 END)::smallint
$$;

CREATE FUNCTION @schema@.state_word(p_world smallint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT (ARRAY['queued', 'running', 'completed', 'failed', 'cancelled'])[p_world + 1]
$$;

CREATE FUNCTION @schema@.state_event(p_world smallint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT (ARRAY['taskQueued', 'taskStarted', 'taskCompleted', 'taskFailed', 'taskCancelled'])[p_world + 1]
$$;

CREATE FUNCTION @schema@.reason_word(p_reason smallint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT (ARRAY['exit', 'signal', 'timeout', 'spawn', 'lost', 'dependency', 'memory'])[p_reason + 1]
$$;

CREATE FUNCTION @schema@.worker_word(p_state smallint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT (ARRAY['live', 'draining', 'silent', 'gone'])[p_state + 1]
$$;

-- Text as a JSON string; NULL is null.
CREATE FUNCTION @schema@.quoted(p_text text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce(pg_catalog.to_json(p_text)::text, 'null')
$$;

-- Params of an event: what every one of a task has, and what the end of one adds.
CREATE FUNCTION @schema@.task_params(p_task bigint, p_world smallint, p_agent_json text, p_attempts integer,
                                     p_not_counted integer, p_more text)
RETURNS text LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.concat('{"taskId":"task-', p_task, '","state":"', @schema@.state_word(p_world), '","agent":',
    p_agent_json,
    ',"attempts":', p_attempts, CASE WHEN p_not_counted > 0 THEN ',"attemptsNotCounted":' || p_not_counted END,
      p_more, '}')
$$;

CREATE FUNCTION @schema@.start_params(p_started timestamptz, p_pid integer) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.concat(',"startedAt":"' || @schema@.iso(p_started) || '"', ',"pid":' || p_pid)
$$;

CREATE FUNCTION @schema@.end_params(p_completed timestamptz, p_code integer, p_signal text, p_reason smallint,
  p_message text,
                                    p_cpu_us bigint, p_memory bigint, p_output bigint)
RETURNS text LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.concat(',"completedAt":"', @schema@.iso(p_completed), '","exitCode":',
    coalesce(p_code::text, 'null'),
    ',"signal":', CASE WHEN p_signal IS NULL THEN 'null' ELSE @schema@.quoted(p_signal) END,
    CASE WHEN p_reason IS NOT NULL THEN
      pg_catalog.concat(',"error":{"reason":"', @schema@.reason_word(p_reason), '","message":',
        @schema@.quoted(p_message), '}') END,
    CASE WHEN p_cpu_us IS NOT NULL THEN
      pg_catalog.concat(',"cpuSeconds":', p_cpu_us::float8 / 1000000, ',"maxMemory":', p_memory, ',"outputBytes":',
        p_output) END)
$$;

-- The event of a task that is as this row has it.
CREATE FUNCTION @schema@.tell_task(p_task @schema@.task, p_was smallint, p_stored bigint DEFAULT NULL,
  p_kind text DEFAULT NULL,
                                   p_more text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_world smallint := @schema@.world(p_task.state, p_task.announced);
BEGIN
  INSERT INTO @schema@.event(id, task, at, was, becomes, stored, kind, params)
  SELECT nextval('@schema@.event_id'), p_task.id, clock_timestamp(), p_was, v_world, p_stored,
    coalesce(p_kind, @schema@.state_event(v_world)),
    @schema@.task_params(p_task.id, v_world, l.agent_json, p_task.attempts, p_task.spared + p_task.lost, concat(
      CASE WHEN v_world = 0 AND p_kind IS NULL THEN ',"retryAt":"' || @schema@.iso(p_task.retry_at) || '"' END,
      CASE WHEN v_world > 0 THEN @schema@.start_params(p_task.started_at, p_task.pid) END,
      CASE WHEN v_world > 1 THEN @schema@.end_params(p_task.completed_at, p_task.exit_code, p_task.signal,
        p_task.error_reason, p_task.error_message, p_task.cpu_us, p_task.max_memory, p_task.output_bytes) END, p_more))
  FROM @schema@.lane l WHERE l.id = p_task.lane;
END $$;

-- An event that is of no task. The transaction has written something before: number_v1 relies on it.
CREATE FUNCTION @schema@.tell(p_kind text, p_params text, p_deltas bigint[] DEFAULT NULL, p_stored bigint DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO @schema@.event(id, task, at, kind, params, deltas, stored)
  VALUES (nextval('@schema@.event_id'), 0, clock_timestamp(), p_kind, p_params, p_deltas, p_stored);
END $$;

CREATE FUNCTION @schema@.tell_worker(p_name text, p_state smallint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM @schema@.tell('workerChanged', concat('{"worker":', @schema@.quoted(p_name), ',"state":"',
                                                @schema@.worker_word(p_state), '"}'));
END $$;

-- NULL on a standby.
CREATE FUNCTION @schema@.server_timeline() RETURNS integer LANGUAGE sql AS $$
  SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN
    ('x' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8))::bit(32)::integer END
$$;

-- Whether the queue is where it was made or adopted, and no copy of that.
CREATE FUNCTION @schema@.is_home(m @schema@.meta) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN m.system = (SELECT s.system_identifier FROM pg_control_system() s) AND m.home = '@schema@.meta'::regclass
    AND m.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
END $$;

CREATE FUNCTION @schema@.refuse_copy() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'adopt: this is a copy of the queue, which was made elsewhere' USING ERRCODE = 'DU002';
END $$;

-- Behind a pooler connections go on when another server takes over: whoever calls it is to greet it first, as a new one.
CREATE FUNCTION @schema@.refuse_new_server() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'renew: the server is on a new timeline' USING ERRCODE = 'DU002';
END $$;

CREATE FUNCTION @schema@.thrice_lost() RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'three attempts were lost with their workers or keepers'
$$;

-- Nor is it told of attempts before it was told what its workers have.
CREATE FUNCTION @schema@.refuse_untold() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'untold: the server has taken over, and this worker has not told what it runs' USING ERRCODE = 'DU004';
END $$;

-- What is behind a lock must be seen as it is then, and not as it was when the transaction began. No function can set that.
CREATE FUNCTION @schema@.check_isolation() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    RAISE EXCEPTION 'isolation: transactions are % here, and the queue needs read committed: '
      'ALTER ROLE % SET default_transaction_isolation = ''read committed'', and have a pooler connect anew', current_setting('transaction_isolation'),
      quote_ident(session_user) USING ERRCODE = 'DU002';
  END IF;
END $$;

-- What is acknowledged is on disk, and on the standby if there is a synchronous one, whatever a role, a database or a client
-- has set. The setting of a function would end with it, before the commit.
CREATE FUNCTION @schema@.make_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM @schema@.check_isolation();
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- Who calls is the worker that it says, and the server the one that the queue knows. Who needs no durable commit says so
-- behind this.
CREATE FUNCTION @schema@.guard(p_worker bigint, p_incarnation uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_is_known boolean;
BEGIN
  SELECT (SELECT m.timeline FROM @schema@.meta m) IS NOT DISTINCT FROM @schema@.server_timeline() INTO v_is_known
  FROM @schema@.worker w WHERE w.id = p_worker AND w.incarnation = p_incarnation AND w.state <> 3;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'fenced' USING ERRCODE = 'DU001';
  ELSIF NOT v_is_known THEN
    PERFORM @schema@.refuse_new_server();
  END IF;
  PERFORM @schema@.make_durable();
END $$;

CREATE FUNCTION @schema@.serves(p_lane @schema@.lane, p_worker @schema@.worker) RETURNS boolean
  LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_lane).needs <@ (p_worker).labels AND ((p_lane).agent = ANY ((p_worker).accepts)
    OR ((p_lane).submitter = (p_worker).name AND (p_lane).agent = ANY ((p_worker).agents)))
$$;

-- Writes down which lanes a worker serves. A claim adds those that came later by itself.
CREATE FUNCTION @schema@.find_lanes(p_worker bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE @schema@.worker w SET lanes = f.lanes, lanes_to = f.lanes_to, groups = f.groups
  FROM (SELECT coalesce(array_agg(l.id ORDER BY l.id) FILTER (WHERE s.is_served), '{}') AS lanes,
          coalesce((SELECT max(n.id) FROM @schema@.lane n), 0) AS lanes_to,
          count(DISTINCT l.grp) FILTER (WHERE s.is_served) AS groups
        FROM @schema@.worker o CROSS JOIN @schema@.lane l
        CROSS JOIN LATERAL (SELECT @schema@.serves(l, o) AS is_served) s
        WHERE o.id = p_worker AND l.retired_at IS NULL) f
  WHERE w.id = p_worker AND (w.lanes, w.lanes_to, w.groups) IS DISTINCT FROM (f.lanes, f.lanes_to, f.groups::integer);
END $$;

-- Makes the lanes that are missing. One at a time: who has seen a lane's number has seen all before it.
CREATE FUNCTION @schema@.make_lanes(p_agents text[], p_groups text[], p_needs text[], p_submitters text[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE @schema@.lane IN SHARE ROW EXCLUSIVE MODE;
  INSERT INTO @schema@.lane AS l(agent, grp, needs, submitter, agent_json)
  SELECT DISTINCT a.agent, a.grp, @schema@.needs_of(a.needs), a.submitter, @schema@.quoted(a.agent)
  FROM unnest(p_agents, p_groups, p_needs, p_submitters) AS a(agent, grp, needs, submitter)
  WHERE NOT EXISTS (SELECT FROM @schema@.lane o WHERE o.agent = a.agent AND o.grp = a.grp
                    AND o.needs = @schema@.needs_of(a.needs) AND o.submitter = a.submitter AND o.retired_at IS NULL)
  ON CONFLICT DO NOTHING;
END $$;

-- Sorted, so that the same labels are the same lane.
CREATE FUNCTION @schema@.needs_of(p_joined text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_joined IS NULL OR p_joined = '' THEN
    RETURN '{}'::text[];
  END IF;
  RETURN ARRAY(SELECT DISTINCT n COLLATE "C" FROM unnest(string_to_array(p_joined, E'\x1f')) AS n ORDER BY 1);
END $$;

-- By which one tells whether a request was edited.
CREATE FUNCTION @schema@.version_of(p_body text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(p_body, 'UTF8')), 'hex')
$$;

-- The state of a queued task that nobody has claimed.
CREATE FUNCTION @schema@.queued_state(p_held boolean, p_open integer, p_due timestamptz) RETURNS smallint
  LANGUAGE sql VOLATILE AS $$
  SELECT (CASE WHEN p_held OR p_open > 0 OR p_due > pg_catalog.clock_timestamp() THEN 0 ELSE 1 END)::smallint
$$;

-- How many bytes of its output are here.
CREATE FUNCTION @schema@.output_of(p_task bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((SELECT sum(octet_length(o.bytes)) FROM @schema@.output o WHERE o.task = p_task), 0);
END $$;

-- What follows for others when these tasks have ended, all in this transaction: those that come after a completed one wait for
-- one less, those after another fail, and what comes after them. Returns the lanes in which tasks became ready, each as
-- often as there are some.
CREATE FUNCTION @schema@.settle(p_done bigint[], p_failed bigint[]) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
  v_all bigint[];
  v_lanes integer[] := '{}';
  v_next bigint[] := p_failed;
  v_task @schema@.task;
  v_more bigint[];
BEGIN
  WITH RECURSIVE failing(id) AS (
    SELECT a.task FROM @schema@.after a WHERE a.dependency = ANY (p_failed)
    UNION SELECT a.task FROM failing f JOIN @schema@.after a ON a.dependency = f.id)
  SELECT array_agg(x.id) INTO v_all FROM (
    SELECT f.id FROM failing f UNION SELECT a.task FROM @schema@.after a WHERE a.dependency = ANY (p_done)
      AND a.open) x;
  IF v_all IS NULL THEN
    RETURN v_lanes;
  END IF;
  PERFORM FROM @schema@.task t WHERE t.id = ANY (v_all) ORDER BY t.id FOR NO KEY UPDATE;
  WITH opened AS (
    UPDATE @schema@.after a SET open = false WHERE a.dependency = ANY (p_done) AND a.open RETURNING a.task),
  each AS (SELECT o.task, count(*)::integer AS many FROM opened o GROUP BY o.task),
  ready AS (
    UPDATE @schema@.task t SET open_after = t.open_after - e.many,
      state = CASE WHEN t.state = 0 THEN @schema@.queued_state(t.held, t.open_after - e.many, t.due) ELSE t.state END
    FROM each e WHERE t.id = e.task RETURNING t.state, t.lane)
  SELECT array_agg(r.lane) INTO v_lanes FROM ready r WHERE r.state = 1;
  WHILE cardinality(v_next) > 0 LOOP
    v_more := '{}';
    FOR v_task IN
      UPDATE @schema@.task t SET state = 4, completed_at = greatest(t.created_at, clock_timestamp()), error_reason = 5, held = false,
        due = NULL, retry_at = NULL, stored = CASE WHEN t.attempts = 0 THEN 0 ELSE @schema@.output_of(t.id) END,
        error_message = 'task-' || f.dependency || ' did not succeed'
      FROM (SELECT a.task, min(a.dependency) AS dependency FROM @schema@.after a
        WHERE a.dependency = ANY (v_next) GROUP BY a.task) f
      WHERE t.id = f.task AND t.state < 2 RETURNING t.*
    LOOP
      PERFORM @schema@.tell_task(v_task, 0::smallint, v_task.stored);
      IF v_task.has_dependents THEN
        v_more := v_more || v_task.id;
      END IF;
      IF v_task.has_env THEN
        UPDATE @schema@.request r SET env = NULL WHERE r.task = v_task.id;
      END IF;
    END LOOP;
    v_next := v_more;
  END LOOP;
  RETURN coalesce(v_lanes, '{}');
END $$;

-- Ends a task that is queued, or one of an attempt that nobody will hear of again; the row is locked.
CREATE FUNCTION @schema@.end_task(p_task bigint, p_state smallint, p_reason smallint, p_message text) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
  v_task @schema@.task;
  v_was smallint;
  v_stored bigint := @schema@.output_of(p_task);
BEGIN
  SELECT @schema@.world(t.state, t.announced) INTO v_was FROM @schema@.task t WHERE t.id = p_task;
  UPDATE @schema@.task t SET state = p_state, completed_at = greatest(t.created_at, clock_timestamp()), error_reason = p_reason,
    error_message = p_message,
    held = false, due = NULL, retry_at = NULL, cancelling = false, stored = v_stored
  WHERE t.id = p_task RETURNING t.* INTO v_task;
  PERFORM @schema@.tell_task(v_task, v_was, v_stored);
  IF v_task.has_env THEN
    UPDATE @schema@.request r SET env = NULL WHERE r.task = p_task;
  END IF;
  IF v_task.has_dependents THEN
    RETURN @schema@.settle('{}', ARRAY[p_task]);
  END IF;
  RETURN '{}'::integer[];
END $$;

-- Queues a task anew whose attempt is over without an end of its own; the row is locked. Its old fence is worth nothing.
CREATE FUNCTION @schema@.queue_again(p_task bigint, p_attempts integer, p_lost integer) RETURNS integer
  LANGUAGE plpgsql AS $$
DECLARE
  v_task @schema@.task;
  v_was smallint;
BEGIN
  SELECT @schema@.world(t.state, t.announced) INTO v_was FROM @schema@.task t WHERE t.id = p_task;
  UPDATE @schema@.task t SET state = @schema@.queued_state(t.held, t.open_after, t.not_before),
    attempts = t.attempts + p_attempts,
    lost = t.lost + p_lost, fence = NULL, announced = false, started_at = NULL, pid = NULL, retry_at = NULL,
      due = t.not_before
  WHERE t.id = p_task RETURNING t.* INTO v_task;
  IF v_was = 1 THEN
    PERFORM @schema@.tell_task(v_task, v_was);
  END IF;
  RETURN v_task.lane;
END $$;

-- `[{"lane":1,"count":2}]` of a list of lanes.
CREATE FUNCTION @schema@.counted(p_lanes integer[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('lane', l.lane, 'count', l.many)), '[]')::text
          FROM (SELECT u.lane, count(*) AS many FROM unnest(p_lanes) AS u(lane) GROUP BY u.lane ORDER BY u.lane) l);
END $$;
