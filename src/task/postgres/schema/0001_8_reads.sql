-- Reads. They lock nothing and change nothing.

-- A task as clients see it.
CREATE TYPE @schema@.record AS (
  id bigint, prompt text, agent text, grp text, priority bigint, state smallint, held boolean, created_ms bigint,
    not_before_ms bigint,
  retry_ms bigint, started_ms bigint, completed_ms bigint, pid integer, exit_code integer, signal text, result bytea,
    error_reason smallint,
  error_message text, attempts integer, spared integer, lost integer, cpu_us bigint, max_memory bigint,
    output_bytes bigint,
  output_gone boolean, labels text, metadata text, worker text, on_lost smallint, needs text, silent boolean, late text,
  submitted_by text, fence bigint, waiting_for text, cancelling boolean);

CREATE FUNCTION @schema@.accepts(p_lane @schema@.lane, p_worker @schema@.worker) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_lane).agent = ANY ((p_worker).accepts)
    OR ((p_lane).submitter = (p_worker).name AND (p_lane).agent = ANY ((p_worker).agents))
$$;

-- Why no live worker can take tasks of a lane; NULL: one can.
CREATE FUNCTION @schema@.nobody_for(p_lane integer) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  l @schema@.lane;
  v_labels text;
  v_state smallint;
  v_missing text;
BEGIN
  SELECT * INTO l FROM @schema@.lane o WHERE o.id = p_lane;
  SELECT min(w.state) INTO v_state FROM @schema@.worker w WHERE w.state < 3 AND w.runs AND @schema@.serves(l, w);
  IF v_state = 0 THEN
    RETURN NULL;
  END IF;
  v_labels := array_to_string(l.needs, ' and ');
  IF v_state IS NOT NULL THEN
    RETURN concat('the only workers ', coalesce('with ' || nullif(v_labels, ''), 'that accept ' || l.agent), ' are ',
      @schema@.worker_word(v_state));
  ELSIF NOT EXISTS (SELECT FROM @schema@.worker w WHERE w.state = 0 AND w.runs AND @schema@.accepts(l, w)) THEN
    RETURN 'no worker that accepts ' || l.agent;
  ELSIF EXISTS (SELECT FROM @schema@.worker w WHERE w.state = 0 AND w.runs AND l.needs <@ w.labels) THEN
    RETURN concat('no worker with ', v_labels, ' that accepts ', l.agent);
  END IF;
  SELECT n.label INTO v_missing FROM unnest(l.needs) WITH ORDINALITY AS n(label, place)
  WHERE NOT EXISTS (SELECT FROM @schema@.worker w WHERE w.state = 0 AND w.runs AND n.label = ANY (w.labels))
  ORDER BY n.place LIMIT 1;
  RETURN 'no worker with ' || coalesce(v_missing, v_labels);
END $$;

-- The records of these tasks, in this order. Of results the last `p_most` bytes.
CREATE FUNCTION @schema@.records(p_ids bigint[], p_most integer) RETURNS SETOF @schema@.record
  LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY
  SELECT t.id, q.prompt, l.agent, l.grp, ~t.rank, @schema@.world(t.state, t.announced), t.held,
    @schema@.ms(t.created_at), @schema@.ms(t.not_before),
    @schema@.ms(t.retry_at), @schema@.ms(t.started_at), @schema@.ms(t.completed_at), t.pid, t.exit_code, t.signal,
    CASE WHEN octet_length(r.bytes) > p_most THEN substr(r.bytes, octet_length(r.bytes) - p_most + 1) ELSE r.bytes END,
    t.error_reason, t.error_message, t.attempts, t.spared, t.lost, t.cpu_us, t.max_memory, t.output_bytes,
      t.output_gone, q.labels, q.metadata,
    CASE WHEN t.state >= 2 THEN w.name END, t.on_lost, array_to_string(l.needs, E'\x1f'), t.state = 2
      AND coalesce(w.state = 2, false), t.late,
    q.submitted_by, t.fence, CASE WHEN t.state < 2 THEN @schema@.nobody_for(t.lane) END, t.cancelling
  FROM unnest(p_ids) WITH ORDINALITY AS u(id, place)
  JOIN @schema@.task t ON t.id = u.id JOIN @schema@.lane l ON l.id = t.lane JOIN @schema@.request q ON q.task = t.id
  LEFT JOIN @schema@.result r ON r.task = t.id LEFT JOIN @schema@.worker w ON w.id = t.worker
  ORDER BY u.place;
END $$;

CREATE FUNCTION @schema@.read_task_v1(p_task bigint) RETURNS SETOF @schema@.record LANGUAGE plpgsql STABLE
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
  SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY SELECT * FROM @schema@.records(ARRAY[p_task], 2147483647);
END $$;

-- All that may have been created since then, if they are few. What has ended since is found by its end, which is not before that;
-- NULL: there are more, and who walks from the newest on finds some soon.
CREATE FUNCTION @schema@.recent(p_since timestamptz, p_with_open boolean) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_few constant integer := 1000;
  v_ids bigint[];
BEGIN
  v_ids := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.state >= 3 AND t.completed_at >= p_since
                 ORDER BY t.completed_at, t.id LIMIT v_few);
  IF cardinality(v_ids) = v_few THEN
    RETURN NULL;
  ELSIF NOT p_with_open THEN
    RETURN v_ids;
  ELSIF (SELECT m.queued + m.running >= 20000 FROM @schema@.meta m) THEN
    RETURN NULL;
  END IF;
  RETURN v_ids || @schema@.open_ones(true);
END $$;

-- With `p_queued` also those that do not run.
CREATE FUNCTION @schema@.open_ones(p_queued boolean) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_ids bigint[] := ARRAY(SELECT t.id FROM @schema@.task t WHERE t.state = 2);
BEGIN
  IF p_queued THEN
    v_ids := v_ids || ARRAY(SELECT t.id FROM @schema@.task t WHERE t.state = 1)
      || ARRAY(SELECT t.id FROM @schema@.task t WHERE t.state = 0);
  END IF;
  RETURN v_ids;
END $$;

-- `p_query`: state, limit, from, group, agent, since (ms), labels (an object), sort (newest, oldest, priority, ended),
-- ofRules (of the newest 100,000 tasks that rules have asked for).
CREATE FUNCTION @schema@.read_tasks_v1(p_query json) RETURNS SETOF @schema@.record LANGUAGE plpgsql STABLE
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
  SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
  v_state integer := (p_query ->> 'state')::integer;
  v_sort text := coalesce(p_query ->> 'sort', 'newest');
  v_from bigint := (p_query ->> 'from')::bigint;
  v_since timestamptz := timestamptz 'epoch' + @schema@.span((p_query ->> 'since')::bigint);
  v_limit integer := coalesce((p_query ->> 'limit')::integer, 20);
  v_lanes integer[];
  v_labels text[];
  v_where text := 't.state = ANY ($1)';
  v_states smallint[] := '{0,1,2,3,4,5}';
  v_ids bigint[];
  v_count bigint;
BEGIN
  IF v_state IS NOT NULL THEN
    v_states := CASE v_state WHEN 0 THEN '{0,1,2}'::smallint[] WHEN 1 THEN '{2}'::smallint[]
      ELSE ARRAY[v_state + 1]::smallint[] END;
    SELECT (ARRAY[m.queued, m.running, m.completed, m.failed, m.cancelled])[v_state + 1] INTO v_count
      FROM @schema@.meta m;
  END IF;
  IF v_state IN (0, 1) THEN
    v_where := v_where || CASE v_state WHEN 0 THEN ' AND NOT (t.state = 2 AND t.announced)' ELSE ' AND t.announced' END;
  END IF;
  -- Said as the partial indexes say it where few are meant.
  IF v_state IN (3, 4) THEN
    v_where := v_where || ' AND t.state >= 4';
  ELSIF v_sort = 'ended' THEN
    v_where := v_where || ' AND t.state >= 3';
  END IF;
  IF p_query ->> 'group' IS NOT NULL OR p_query ->> 'agent' IS NOT NULL THEN
    v_lanes := ARRAY(SELECT l.id FROM @schema@.lane l WHERE l.grp = coalesce(p_query ->> 'group', l.grp)
      AND l.agent = coalesce(p_query ->> 'agent', l.agent));
    v_where := v_where || ' AND t.lane = ANY ($2)';
  END IF;
  IF v_from IS NOT NULL THEN
    v_where := v_where || CASE WHEN v_sort = 'oldest' THEN ' AND t.id > $3' ELSE ' AND t.id < $3' END;
  END IF;
  IF v_since IS NOT NULL THEN
    v_where := v_where || ' AND t.created_at >= $4';
  END IF;
  IF p_query -> 'labels' IS NOT NULL THEN
    -- Members of one JSON object are compared as text: a quote inside a string has a backslash before it.
    v_labels := ARRAY(SELECT to_json(l.key)::text || ':' || l.value::text FROM json_each(p_query -> 'labels') AS l);
    v_where := v_where || ' AND (SELECT bool_and(position(''{'' || f || '','' IN s.x) > 0 OR position('','' || f || '','' IN s.x) > 0)'
      ' FROM unnest($5) AS f, (SELECT left(q.labels, -1) || '','' AS x FROM @schema@.request q WHERE q.task = t.id) s)';
  END IF;
  -- few: they are found first, then sorted
  IF p_query ->> 'ofRules' = 'true' THEN
    v_ids := ARRAY(SELECT q.task FROM @schema@.request q WHERE q.metadata LIKE '%"automation"%'
      ORDER BY q.task DESC LIMIT 100000);
  ELSIF v_state = 1 OR (v_state = 0 AND v_count < 20000 AND v_sort <> 'priority') THEN
    v_ids := @schema@.open_ones(v_state = 0);
  ELSIF v_since IS NOT NULL AND v_state IS DISTINCT FROM 0 THEN
    v_ids := @schema@.recent(v_since, v_state IS NULL AND v_sort <> 'ended');
  END IF;
  IF v_ids IS NOT NULL THEN
    v_where := replace(v_where, 't.state = ANY', 't.state + 0 = ANY') || ' AND t.id = ANY ($7)';
  END IF;
  EXECUTE 'SELECT ARRAY(SELECT t.id FROM @schema@.task t WHERE ' || v_where || ' ORDER BY ' ||
    CASE v_sort WHEN 'oldest' THEN 't.id' WHEN 'priority' THEN 't.rank, t.id' WHEN 'ended'
      THEN 't.completed_at DESC, t.id DESC' ELSE 't.id DESC' END ||
    ' LIMIT $6)' INTO v_ids USING v_states, v_lanes, v_from, v_since, v_labels, v_limit, v_ids;
  RETURN QUERY SELECT * FROM @schema@.records(v_ids, 1024);
END $$;

CREATE FUNCTION @schema@.read_request_v1(p_task bigint) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
BEGIN
  RETURN (SELECT concat('{"body":', @schema@.quoted(q.body), ',"version":"', @schema@.version_of(q.body),
    '","metadata":', @schema@.quoted(q.metadata), ',"hasEnv":', to_json(t.has_env), ',"agent":', l.agent_json, ',"group":',
    @schema@.quoted(l.grp), ',"state":',
                        @schema@.world(t.state, t.announced), ',"priority":', ~t.rank, ',"retries":', t.retries,
                          ',"attempts":', t.attempts,
                        ',"onLost":', t.on_lost, ',"needs":', to_json(l.needs)::text, ',"key":',
                          @schema@.quoted(q.key), ',"after":',
                        (SELECT coalesce(json_agg(a.dependency ORDER BY a.dependency), '[]')::text
                          FROM @schema@.after a WHERE a.task = t.id), '}')
          FROM @schema@.task t JOIN @schema@.lane l ON l.id = t.lane JOIN @schema@.request q ON q.task = t.id
            WHERE t.id = p_task);
END $$;

-- `record`: what rules need of the task, as it is now.
CREATE FUNCTION @schema@.read_events_v1(p_after bigint, p_most integer)
RETURNS TABLE(seq bigint, kind text, task bigint, params text, arrived_ms bigint, record text) LANGUAGE plpgsql STABLE
  SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
  SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT e.seq, e.kind, e.task, e.params, e.arrived_ms,
    CASE WHEN t.id IS NOT NULL THEN concat('{"agent":', l.agent_json, ',"group":', @schema@.quoted(l.grp),
      ',"metadata":', @schema@.quoted(q.metadata),
      ',"state":', @schema@.world(t.state, t.announced), ',"attempts":', t.attempts, ',"labels":',
        @schema@.quoted(q.labels), '}') END
  FROM (SELECT * FROM @schema@.event o WHERE o.seq > p_after AND o.seq IS NOT NULL ORDER BY o.seq LIMIT p_most) e
  LEFT JOIN @schema@.task t ON t.id = e.task AND e.task > 0 LEFT JOIN @schema@.lane l ON l.id = t.lane LEFT
    JOIN @schema@.request q ON q.task = t.id
  ORDER BY e.seq;
END $$;

CREATE FUNCTION @schema@.read_events_state_v1() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  RETURN (SELECT json_build_object('epoch', m.epoch, 'oldest', greatest(m.epoch_start, coalesce(
      (SELECT min(e.seq) FROM @schema@.event e WHERE e.seq IS NOT NULL), m.next_seq)), 'next', m.next_seq,
    'unnumbered', EXISTS (SELECT FROM @schema@.event e WHERE e.seq IS NULL AND e.id > m.low_event))::text
      FROM @schema@.meta m);
END $$;

CREATE FUNCTION @schema@.read_stats_v1() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (SELECT json_build_object('queued', m.queued, 'running', m.running, 'completed', m.completed, 'failed',
    m.failed, 'cancelled', m.cancelled, 'slots', (SELECT coalesce(sum(w.slots), 0) FROM @schema@.worker w
      WHERE w.state < 2))::text FROM @schema@.meta m);
END $$;

-- How many tasks each lane has queued and running; one that is claimed and has not started is both to claims, queued to people.
CREATE FUNCTION @schema@.lane_counts() RETURNS TABLE(lane integer, queued bigint, running bigint)
  LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT c.lane, sum(c.queued)::bigint, sum(c.running)::bigint FROM (
    SELECT t.lane, count(*) AS queued, 0 AS running FROM @schema@.task t WHERE t.state = 1 GROUP BY t.lane
    UNION ALL SELECT t.lane, count(*), 0 FROM @schema@.task t WHERE t.state = 0 GROUP BY t.lane
    UNION ALL SELECT t.lane, count(*) FILTER (WHERE NOT t.announced), count(*) FILTER (WHERE t.announced)
      FROM @schema@.task t WHERE t.state = 2 GROUP BY t.lane) c
  GROUP BY c.lane;
END $$;

CREATE FUNCTION @schema@.workers_json() RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('id', w.id, 'name', w.name, 'state',
    @schema@.worker_word(w.state), 'draining', w.draining,
      'running', (SELECT count(*) FROM @schema@.task t WHERE t.worker = w.id AND t.state = 2), 'slots', w.slots,
        'runs', w.runs,
      'labels', array_remove(w.labels, 'name=' || w.name), 'accepts', w.accepts, 'agents', w.agents, 'version',
        w.version, 'protocol', w.protocol,
      'machine', w.machine, 'waiting', (SELECT a.waits FROM @schema@.waiter a WHERE a.worker = w.id),
      'lease', w.lease_ms, 'lostAfter', w.lost_after_ms, 'login', w.login,
      'beatAgeMs', @schema@.ms(clock_timestamp()) - @schema@.ms(w.beat_at)) ORDER BY w.id), '[]')
        FROM @schema@.worker w WHERE w.state <> 3);
END $$;

CREATE FUNCTION @schema@.read_queue_v1() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN (
    WITH counts AS MATERIALIZED (SELECT l.agent, l.grp, c.queued, c.running FROM @schema@.lane_counts() c
      JOIN @schema@.lane l ON l.id = c.lane)
    SELECT json_build_object('paused', EXISTS (SELECT FROM @schema@.gate g WHERE g.kind = 'queue' AND g.paused),
      'groups', (SELECT coalesce(json_agg(json_build_object('name', x.name, 'paused', (SELECT g.paused
        FROM @schema@.gate g WHERE g.kind = 'group' AND g.name = x.name),
          'running', x.running, 'queued', x.queued) ORDER BY x.name), '[]')
        FROM (SELECT n.name, sum(n.queued) AS queued, sum(n.running) AS running FROM (
                SELECT c.grp AS name, c.queued, c.running FROM counts c
                UNION ALL SELECT g.name, 0, 0 FROM @schema@.gate g WHERE g.kind = 'group'
                  AND g.paused IS NOT NULL) n GROUP BY n.name) x),
      'agents', (SELECT coalesce(json_agg(json_build_object('name', x.name, 'running', x.running, 'queued', x.queued,
          'heldUntil', @schema@.ms(g.held_until), 'heldSince', @schema@.ms(g.held_since), 'heldTask', g.held_task,
            'heldText', g.held_text) ORDER BY x.name), '[]')
        FROM (SELECT n.name, sum(n.queued) AS queued, sum(n.running) AS running FROM (
                SELECT c.agent AS name, c.queued, c.running FROM counts c
                UNION ALL SELECT h.name, 0, 0 FROM @schema@.gate h WHERE h.kind = 'agent'
                  AND h.held_until > clock_timestamp()) n GROUP BY n.name) x
        LEFT JOIN @schema@.gate g ON g.kind = 'agent' AND g.name = x.name AND g.held_until > clock_timestamp()),
      'workers', @schema@.workers_json())::text);
END $$;

CREATE FUNCTION @schema@.read_output_v1(p_task bigint, p_offset bigint, p_most integer)
RETURNS TABLE(attempt integer, start bigint, bytes bytea, marks text) LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  v_base bigint := 0;  -- where an attempt begins in the whole
  s record;
BEGIN
  FOR s IN SELECT o.attempt, o.total FROM @schema@.output_state o WHERE o.task = p_task ORDER BY o.attempt LOOP
    IF v_base + s.total > p_offset AND v_base < p_offset + p_most THEN
      RETURN QUERY SELECT o.attempt, o.start, o.bytes, o.marks FROM @schema@.output o
        WHERE o.task = p_task AND o.attempt = s.attempt AND o.start > p_offset - v_base - 65536
          AND o.start < p_offset + p_most - v_base
          AND o.start + octet_length(o.bytes) > p_offset - v_base ORDER BY o.start;
    END IF;
    v_base := v_base + s.total;
  END LOOP;
END $$;

-- Of a task that is still queued to the world nobody reads what it may be writing already.
CREATE FUNCTION @schema@.read_output_state_v1(p_task bigint) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
BEGIN
  RETURN (SELECT concat('{"attempts":[', (SELECT string_agg(concat('{"attempt":', o.attempt, ',"total":', o.total,
    ',"dropped":', o.dropped, ',"last":', to_json(o.last),
      ',"gone":', to_json(t.output_gone AND NOT EXISTS (SELECT FROM @schema@.output p WHERE p.task = t.id
        AND p.attempt = o.attempt) AND o.total > 0), '}'), ',' ORDER BY o.attempt)
      FROM @schema@.output_state o WHERE o.task = t.id AND o.attempt <= k.known), '],"state":',
        @schema@.world(t.state, t.announced), ',"attempt":', k.known, '}')
    FROM @schema@.task t CROSS JOIN LATERAL (
      SELECT t.attempts - CASE WHEN t.state = 2 AND NOT t.announced THEN 1 ELSE 0 END AS known) k
    WHERE t.id = p_task);
END $$;

-- Attempts that run, and how far the output of their tasks is there. What a worker has not sent yet is still to come.
CREATE FUNCTION @schema@.read_running_v1() RETURNS TABLE(task bigint, attempt integer, place bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT t.id, t.attempts,
    coalesce((SELECT sum(s.total) FROM @schema@.output_state s WHERE s.task = t.id AND s.attempt < t.attempts), 0)::bigint
      + coalesce((SELECT o.start + octet_length(o.bytes) FROM @schema@.output o
                  WHERE o.task = t.id AND o.attempt = t.attempts ORDER BY o.start DESC LIMIT 1), 0)
    FROM @schema@.task t WHERE t.state = 2 AND t.announced;
END $$;

-- What is new of many tasks, each from its place on: rows as of read_output_v1, at least one of each that has something
-- new or has ended, or is not there any more. The first row of each has its state, NULL if it is not there. Without a place
-- only that. A row with an empty state is of the first one for which there was no room.
CREATE FUNCTION @schema@.read_outputs_v1(p_tasks bigint[], p_places bigint[], p_most bigint)
RETURNS TABLE(task bigint, told text, attempt integer, start bigint, bytes bytea, marks text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  v_left bigint := least(p_most, 16777216);
  v_ended boolean;
  v_total bigint;
  r record;
BEGIN
  FOR i IN 1..least(coalesce(array_length(p_tasks, 1), 0), 10000) LOOP
    task := p_tasks[i];
    IF v_left <= 0 THEN
      told := '';
      attempt := NULL; start := NULL; bytes := NULL; marks := NULL;
      RETURN NEXT;
      EXIT;
    END IF;
    SELECT t.state >= 3, (SELECT sum(s.total) FROM @schema@.output_state s WHERE s.task = t.id)
      INTO v_ended, v_total FROM @schema@.task t WHERE t.id = p_tasks[i];
    CONTINUE WHEN NOT v_ended AND coalesce(v_total, 0) <= p_places[i];
    told := @schema@.read_output_state_v1(p_tasks[i]);
    v_left := v_left - coalesce(octet_length(told), 0);
    FOR r IN SELECT o.attempt, o.start, o.bytes, o.marks FROM (VALUES (1)) one(row)
      LEFT JOIN @schema@.read_output_v1(p_tasks[i], p_places[i], 65536) o ON true LOOP
      attempt := r.attempt; start := r.start; bytes := r.bytes; marks := r.marks;
      RETURN NEXT;
      told := NULL;
      v_left := v_left - coalesce(octet_length(r.bytes), 0);
    END LOOP;
  END LOOP;
END $$;

-- Of these tasks those that there still are.
CREATE FUNCTION @schema@.read_known_v1(p_tasks bigint[]) RETURNS TABLE(id bigint) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT t.id FROM unnest(p_tasks) AS u(id) JOIN @schema@.task t ON t.id = u.id;
END $$;

CREATE FUNCTION @schema@.read_handle_v1(p_handle text) RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (SELECT h.task FROM @schema@.handle h WHERE h.handle = p_handle);
END $$;

CREATE FUNCTION @schema@.read_explain_v1(p_task bigint) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
BEGIN
  RETURN (
    SELECT json_build_object('state', @schema@.world(t.state, t.announced), 'agent', l.agent, 'group', l.grp, 'needs',
      l.needs, 'held', t.held,
      'notBefore', @schema@.ms(t.not_before), 'retryAt', @schema@.ms(t.retry_at),
      'after', (SELECT coalesce(json_agg(json_build_object('task', a.dependency, 'state',
        @schema@.world(d.state, d.announced)) ORDER BY a.dependency), '[]')
                FROM @schema@.after a LEFT JOIN @schema@.task d ON d.id = a.dependency WHERE a.task = t.id AND a.open),
      'queuePaused', EXISTS (SELECT FROM @schema@.gate g WHERE g.kind = 'queue' AND g.paused),
      'groupPaused', (SELECT g.paused FROM @schema@.gate g WHERE g.kind = 'group' AND g.name = l.grp),
      'heldUntil', (SELECT @schema@.ms(g.held_until) FROM @schema@.gate g WHERE g.kind = 'agent' AND g.name = l.agent
        AND g.held_until > clock_timestamp()),
      'heldTask', (SELECT g.held_task FROM @schema@.gate g WHERE g.kind = 'agent' AND g.name = l.agent
        AND g.held_until > clock_timestamp()),
      'before', (SELECT count(*) FROM (SELECT FROM @schema@.task r WHERE t.state = 1 AND r.lane = t.lane AND r.state = 1
        AND (r.rank, r.id) < (t.rank, t.id)
                 ORDER BY r.rank, r.id LIMIT 1000) b),
      'runningInGroup', (SELECT count(*) FROM @schema@.task r JOIN @schema@.lane o ON o.id = r.lane WHERE r.state = 2
        AND o.grp = l.grp),
      'runningForAgent', (SELECT count(*) FROM @schema@.task r JOIN @schema@.lane o ON o.id = r.lane WHERE r.state = 2
        AND o.agent = l.agent),
      'worker', CASE WHEN t.state = 2 THEN w.name END, 'claimed', t.state = 2 AND NOT t.announced, 'silent',
        t.state = 2 AND coalesce(w.state = 2, false),
      'slots', (SELECT json_build_object('all', sum(u.slots), 'used', sum(u.used), 'free', sum(greatest(u.slots - u.used, 0)))
        FROM (SELECT q.slots, (SELECT count(*) FROM @schema@.task r WHERE r.worker = q.id AND r.state = 2) AS used
          FROM @schema@.worker q WHERE q.state = 0 AND q.runs AND @schema@.serves(l, q)) u),
      -- Those that could take it wait for the others to tell what they run.
      'recovering', EXISTS (SELECT FROM @schema@.meta m WHERE m.recovering_until > clock_timestamp())
        AND NOT EXISTS (SELECT FROM @schema@.worker q WHERE q.state = 0 AND q.runs AND NOT q.recovering
          AND @schema@.serves(l, q)),
      'missing', CASE WHEN t.state < 2 THEN @schema@.nobody_for(t.lane) END, 'cancelling', t.cancelling, 'error',
        t.error_message)::text
    FROM @schema@.task t JOIN @schema@.lane l ON l.id = t.lane LEFT JOIN @schema@.worker w ON w.id = t.worker
      WHERE t.id = p_task);
END $$;

CREATE FUNCTION @schema@.read_status_v1() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  m @schema@.meta;
BEGIN
  SELECT * INTO m FROM @schema@.meta;
  RETURN json_build_object('project', m.project, 'queue', m.queue, 'schemaVersion', m.version, 'epoch', m.epoch,
    'timeline', m.timeline,
    'serverTimeline', @schema@.server_timeline(), 'serverVersion', current_setting('server_version_num')::integer,
    'settings', json_build_object('queue_capacity', m.queue_capacity, 'keep_days', m.keep_days, 'keep_tasks',
      m.keep_tasks, 'keep_output', m.keep_output),
    'stats', @schema@.read_stats_v1()::json, 'storedOutput', m.stored, 'workers', @schema@.workers_json(),
    'lanes', (SELECT coalesce(json_agg(json_build_object('lane', l.id, 'agent', l.agent, 'group', l.grp, 'needs',
      l.needs, 'submitter', nullif(l.submitter, ''),
        'queued', c.queued, 'running', c.running, 'workers', (SELECT coalesce(json_agg(w.name ORDER BY w.name), '[]')
          FROM @schema@.worker w
          WHERE w.state = 0 AND w.runs AND @schema@.serves(l, w)), 'waitingFor', @schema@.nobody_for(l.id))
            ORDER BY l.id), '[]')
      FROM @schema@.lane_counts() c JOIN @schema@.lane l ON l.id = c.lane),
    -- Who may not see how a standby is does not know of any.
    'synchronousStandbys', CASE WHEN pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
      THEN (SELECT count(*) FROM pg_stat_replication r WHERE r.sync_state IN ('sync', 'quorum')) END,
    'standbys', (SELECT count(*) FROM pg_stat_replication),
    'synchronousCommit', current_setting('synchronous_commit'), 'fsync', current_setting('fsync')::boolean,
      'fullPageWrites', current_setting('full_page_writes')::boolean,
    'oldestTransaction', (SELECT json_build_object('pid', a.pid, 'application', a.application_name, 'ageMs',
      @schema@.ms(clock_timestamp()) - @schema@.ms(a.xact_start))
      FROM pg_stat_activity a WHERE a.xact_start IS NOT NULL AND a.pid <> pg_backend_pid()
        AND a.datname = current_database() AND a.backend_type <> 'autovacuum worker'  -- it keeps no rows
      ORDER BY a.xact_start LIMIT 1),
    'tables', (SELECT json_agg(json_build_object('name', s.relname, 'live', s.n_live_tup, 'dead', s.n_dead_tup)
      ORDER BY s.relname)
      FROM pg_stat_user_tables s WHERE s.schemaname = '@schema@'),
    'invalidIndexes', (SELECT coalesce(json_agg(c.relname), '[]') FROM pg_index i JOIN pg_class c
      ON c.oid = i.indexrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '@schema@' AND NOT i.indisvalid),
    'autovacuum', current_setting('autovacuum')::boolean, 'notifyQueue', pg_notification_queue_usage(),
    'connections', (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'client backend'),
      'maxConnections', current_setting('max_connections')::integer,
    'reservedConnections', current_setting('superuser_reserved_connections')::integer,
    'logStatement', current_setting('log_statement'), 'logMinDuration',
      current_setting('log_min_duration_statement')::bigint,
    'logParameters', current_setting('log_parameter_max_length')::bigint, 'logErrorParameters',
      current_setting('log_parameter_max_length_on_error')::bigint,
    'logErrorStatement', current_setting('log_min_error_statement'),
    'encoding', current_setting('server_encoding'), 'serverNow', @schema@.ms(clock_timestamp()),
    'unnumbered', (SELECT count(*) FROM (SELECT FROM @schema@.event e WHERE e.seq IS NULL AND e.id > m.low_event
      LIMIT 100000) u))::text;
END $$;
