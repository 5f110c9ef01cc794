-- Rights: nobody has any that is not named here.
DO $$
DECLARE
  v_reads text[] := ARRAY['hello_v1', 'read_task_v1', 'read_tasks_v1', 'read_request_v1', 'read_events_v1',
    'read_events_state_v1', 'read_stats_v1',
    'read_queue_v1', 'read_output_v1', 'read_output_state_v1', 'read_explain_v1', 'read_status_v1', 'read_handle_v1',
      'read_known_v1', 'read_running_v1', 'read_outputs_v1'];
  v_client text[] := ARRAY['attach_v1', 'beat_v1', 'submit_v1', 'cancel_v1', 'hold_v1', 'edit_v1', 'requeue_v1',
    'remove_v1', 'pause_v1', 'release_v1',
    'handle_v1', 'tell_v1', 'number_v1', 'wake_v1', 'nudge_v1', 'leave_v1', 'renew_v1', 'recover_v1'];
  v_worker text[] := ARRAY['claim_v1', 'report_v1', 'sweep_v1', 'silence_v1', 'lose_v1', 'wait_v1'];
  v_admin text[] := ARRAY['set_v1', 'drain_v1', 'forget_v1'];
  f record;
BEGIN
  FOR f IN SELECT p.oid::regprocedure AS called, p.proname AS name FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
           WHERE n.nspname = '@schema@' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.called);
    IF f.name = ANY (v_reads) THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO @schema@_watcher, @schema@_client, @schema@_worker, @schema@_admin',
                     f.called);
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
