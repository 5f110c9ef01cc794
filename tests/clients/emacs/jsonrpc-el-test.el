;;; jsonrpc-el-test.el --- Emacs' own jsonrpc.el talks to the daemon  -*- lexical-binding: t; -*-

;; emacs -Q --batch -l jsonrpc-el-test.el --eval '(setq duet-program "…")' -f ert-run-tests-batch-and-exit

(require 'cl-lib)
(require 'ert)
(require 'jsonrpc)

(defvar duet-program (getenv "DUET_RPC_PROGRAM") "The program under test.")

(defun duet-start (name &optional stderr command)
  "A jsonrpc.el connection NAME to a daemon of its own; with STDERR, a buffer is given for its log.
COMMAND is the one to run it with."
  (jsonrpc-process-connection
   :name name
   :events-buffer-scrollback-size 0
   :process (lambda ()
              (make-process :name name
                            :command (or command (list duet-program "rpc"))
                            :connection-type 'pipe
                            :coding 'utf-8-emacs-unix
                            :noquery t
                            :stderr (and stderr (get-buffer-create (format "*%s stderr*" name)))))))

(defmacro duet-with (connection &rest body)
  "Run BODY with CONNECTION bound to a running daemon."
  (declare (indent 1))
  `(let ((,connection (duet-start (format "duet-%s" (random)) t)))
     (unwind-protect (progn ,@body)
       (jsonrpc-shutdown ,connection))))

(defun duet-call (connection method &optional params)
  (jsonrpc-request connection method params :timeout 60))

(defun duet-error (connection method &optional params)
  "The (CODE MESSAGE DATA) with which METHOD is refused."
  (let ((problem (should-error (duet-call connection method params) :type 'jsonrpc-error)))
    (mapcar (lambda (field) (alist-get field (cddr problem)))
            '(jsonrpc-error-code jsonrpc-error-message jsonrpc-error-data))))

(defun duet-wait (condition)
  "Wait until the function CONDITION returns non-nil; 10 s are enough for anything."
  (let ((deadline (+ (float-time) 60)))
    (while (not (funcall condition))
      (when (> (float-time) deadline) (ert-fail "it did not happen within 60 s"))
      (accept-process-output nil 0.01))))

(defun duet-child-of (parent)
  "The one child of the process PARENT, once there is one."
  (let (child)
    (duet-wait (lambda ()
                 (setq child (seq-find (lambda (pid) (eql (alist-get 'ppid (process-attributes pid)) parent))
                                       (list-system-processes)))))
    child))

(ert-deftest duet-the-six-methods ()
  (duet-with daemon
    (let ((info (duet-call daemon :initialize '(:processId nil :capabilities nil))))
      (should (equal (plist-get info :protocolVersion) "2.0"))
      (should (equal (plist-get (plist-get info :serverInfo) :name) "duet-rpc"))
      (should (equal (duet-call daemon :version)
                     (list :version (plist-get (plist-get info :serverInfo) :version)))))
    (let ((names (mapcar (lambda (method) (plist-get method :name)) (duet-call daemon :listMethods))))
      (should (equal names '("initialize" "listMethods" "describeMethods" "version" "setLogLevel" "shutdown")))
      (should (equal names (mapcar (lambda (method) (plist-get method :name)) (duet-call daemon :describeMethods)))))
    (should (equal (duet-call daemon :setLogLevel '(:level "WARN")) '(:level "warn" :success t)))
    (should (equal (duet-call daemon :shutdown) '(:message "Shutting down gracefully")))))

(ert-deftest duet-nil-params-are-null ()
  (duet-with daemon
    (dolist (params '(nil [] (:x 1) [1 2]))
      (should (plist-get (duet-call daemon :version params) :version)))))

(ert-deftest duet-params-by-position ()
  (duet-with daemon
    (should (equal (duet-call daemon :setLogLevel ["error"]) '(:level "error" :success t)))))

(ert-deftest duet-errors-carry-their-data ()
  (duet-with daemon
    (should (equal (duet-error daemon :frobnicate) '(-32601 "Method not found" nil)))
    (pcase-let ((`(,code ,message ,data) (duet-error daemon :setLogLevel '(:level "loud"))))
      (should (equal (list code message) '(-32602 "Invalid params")))
      (should (equal (plist-get data :param) "level"))
      (should (equal (plist-get data :received) "loud"))
      (should (equal (plist-get data :accepted) ["debug" "info" "warn" "error"])))
    (should (equal (plist-get (nth 2 (duet-error daemon :setLogLevel nil)) :received) "missing"))
    (should (plist-get (duet-call daemon :version) :version))))

(ert-deftest duet-notifications-are-silent ()
  (duet-with daemon
    (jsonrpc-notify daemon :initialized nil)
    (jsonrpc-notify daemon :setLogLevel '(:level 5))
    (jsonrpc-notify daemon :version nil)
    (jsonrpc-notify daemon :exit nil)
    (should (plist-get (duet-call daemon :version) :version))
    (should (= 0 (buffer-size (process-buffer (jsonrpc--process daemon)))))))

(ert-deftest duet-non-ascii-text ()
  (duet-with daemon
    (should (equal (duet-error daemon (intern ":Grüße-世界-😀")) '(-32601 "Method not found" nil)))
    (should (equal (plist-get (nth 2 (duet-error daemon :setLogLevel '(:level "späť-世界-😀"))) :received)
                   "späť-世界-😀"))))

(ert-deftest duet-nine-megabytes ()
  (duet-with daemon
    (should (plist-get (duet-call daemon :version (list :text (make-string 9000000 ?x))) :version))
    (should (plist-get (duet-call daemon :version (list :text (make-string 4500000 ?é))) :version))
    (should (plist-get (duet-call daemon :version) :version))))

(ert-deftest duet-oversize-is-refused-and-survived ()
  "The refusal has id null, which jsonrpc.el cannot deliver; what matters is that the next request is answered."
  (duet-with daemon
    (ignore-errors (jsonrpc-notify daemon :version (list :text (make-string 11000000 ?x))))
    (let (answer (deadline (+ (float-time) 60)))
      (while (and (not answer) (< (float-time) deadline))
        (setq answer (ignore-errors (duet-call daemon :version))))
      (should (plist-get answer :version)))))

(ert-deftest duet-a-reader-that-is-busy ()
  "Emacs sends much and reads nothing meanwhile; then all answers are there, in order."
  (duet-with daemon
    (let (answered (total 2000))
      (dotimes (number total)
        (jsonrpc-async-request daemon :describeMethods nil
                               :success-fn (lambda (_result) (push number answered))
                               :timeout 60))
      (duet-wait (lambda () (= (length answered) total)))
      (should (equal (reverse answered) (number-sequence 0 (1- total)))))))

(ert-deftest duet-without-a-stderr-buffer ()
  "Emacs mixes stderr into stdout when nobody gave it a buffer: at the default level there is nothing to mix in."
  (let ((daemon (duet-start "duet-without-stderr")))
    (unwind-protect
        (dotimes (_ 3)
          (should (plist-get (duet-call daemon :version) :version))
          (should (equal (duet-call daemon :setLogLevel '(:level "warn")) '(:level "warn" :success t))))
      (jsonrpc-shutdown daemon))))

(ert-deftest duet-shutdown-request-ends-the-process ()
  (let* ((daemon (duet-start "duet-shutdown-request" t))
         (process (jsonrpc--process daemon)))
    (should (equal (duet-call daemon :shutdown) '(:message "Shutting down gracefully")))
    (duet-wait (lambda () (not (process-live-p process))))
    (should (eq (process-status process) 'exit))
    (should (= (process-exit-status process) 0))
    (jsonrpc-shutdown daemon)
    (should-not (jsonrpc-running-p daemon))))

(ert-deftest duet-jsonrpc-shutdown ()
  (let ((daemon (duet-start "duet-jsonrpc-shutdown" t)))
    (should (plist-get (duet-call daemon :version) :version))
    (should (jsonrpc-running-p daemon))
    (jsonrpc-shutdown daemon t)
    (should-not (jsonrpc-running-p daemon))))

(ert-deftest duet-end-of-input-ends-the-process ()
  (let* ((daemon (duet-start "duet-end-of-input" t))
         (process (jsonrpc--process daemon)))
    (should (plist-get (duet-call daemon :version) :version))
    (process-send-eof process)
    (duet-wait (lambda () (not (process-live-p process))))
    (should (= (process-exit-status process) 0))))

(ert-deftest duet-death-is-told-to-who-waits ()
  "A daemon that dies with a request open: the request fails at once instead of timing out."
  ;; Emacs sends nothing to a child that it knows to be stopped, so the daemon is a shell's child.
  (let* ((daemon (duet-start "duet-death" t (list "sh" "-c" "\"$0\" rpc; exit $?" duet-program)))
         (process (duet-child-of (process-id (jsonrpc--process daemon))))
         failure)
    (should (plist-get (duet-call daemon :version) :version))
    (signal-process process 'SIGSTOP)
    (jsonrpc-async-request daemon :version nil
                           :error-fn (lambda (problem) (setq failure problem))
                           :timeout 60)
    (signal-process process 'SIGKILL)
    (duet-wait (lambda () failure))
    (should (equal (plist-get failure :message) "Server died"))
    (should-not (jsonrpc-running-p daemon))))

;; What docs/editors.md shows is what is run here, with the project's daemon behind it.

(defvar duet-docs (expand-file-name "../../../docs/editors.md" (file-name-directory (or load-file-name buffer-file-name))))

(with-temp-buffer
  (insert-file-contents duet-docs)
  (re-search-forward "^```elisp\n")
  (let ((begin (point)))
    (re-search-forward "^```$")
    (eval-region begin (match-beginning 0))))

(defmacro duet-with-project (connection &rest body)
  "Run BODY with CONNECTION bound to the daemon of a project of its own."
  (declare (indent 1))
  `(let* ((folder (make-temp-file "duet-emacs-" t))
          (exec-path (cons (file-name-directory duet-program) exec-path))
          (process-environment (append (list (concat "HOME=" folder) "XDG_CONFIG_HOME") process-environment)))
     (write-region "default_agent = \"test\"\n[agents.test]\ncommand = [\"sh\", \"-c\", \"cat\"]\nstdin = \"prompt\"\n"
                   nil (expand-file-name "config.toml" (duet-config-folder folder)))
     (make-directory (expand-file-name "project/.git" folder) t)
     (let ((,connection (duet-connect (expand-file-name "project" folder))))
       (unwind-protect (progn ,@body)
         (when (jsonrpc-running-p ,connection) (jsonrpc-shutdown ,connection))
         (let ((default-directory (file-name-as-directory (expand-file-name "project" folder))))
           (call-process duet-program nil nil nil "daemon" "stop" "--force" "--if-running"))
         (delete-directory folder t)))))

(defun duet-config-folder (home)
  (let ((folder (expand-file-name ".config/duet-rpc" home)))
    (make-directory folder t)
    folder))

(ert-deftest duet-connect-runs-a-task ()
  (duet-with-project daemon
    (should (plist-get (duet-call daemon :ping) :pong))
    (let* ((task (duet-submit daemon "Grüße 😀"))
           (record (duet-call daemon :task.wait (list :taskId task))))
      (should (equal task "task-1"))
      (should (equal (plist-get record :state) "completed"))
      (should (equal (plist-get record :result) "Grüße 😀")))
    (should (equal (car (duet-error daemon :nonsense)) -32601))))

(ert-deftest duet-connect-tells-of-events ()
  (duet-with-project daemon
    (let (told)
      (cl-letf (((symbol-function 'duet-take-event)
                 (lambda (_connection event params) (push (list event (plist-get params :taskId)) told))))
        (setf (slot-value daemon '-notification-dispatcher) #'duet-take-event)
        (let ((task (duet-submit daemon "x")))
          (duet-wait (lambda () (member (list 'event.taskCompleted task) told))))))))

(ert-deftest duet-connect-nine-megabytes ()
  (duet-with-project daemon
    (should (plist-get (duet-call daemon :ping (list :text (make-string 9000000 ?x))) :pong))
    (should (plist-get (duet-call daemon :ping) :pong))))

(ert-deftest duet-connect-ends-with-the-daemon ()
  "A request that is open when the daemon goes fails at once."
  (duet-with-project daemon
    (let ((task (duet-submit daemon "x")) failure)
      (duet-call daemon :task.wait (list :taskId task))
      (jsonrpc-async-request daemon :task.wait (list :taskId "task-2" :timeoutSeconds 50)
                             :error-fn (lambda (problem) (setq failure problem)))
      (duet-call daemon :daemon.stop)
      (duet-wait (lambda () (not (jsonrpc-running-p daemon))))
      (should failure))))

(provide 'jsonrpc-el-test)
;;; jsonrpc-el-test.el ends here
