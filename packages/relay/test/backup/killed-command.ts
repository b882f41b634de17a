/**
 * Loaded before a command, and before the processes and threads that it starts: ends the command with SIGKILL at a
 * moment that the environment names, itself and not from outside, so that the moment is the same on a busy machine.
 */
import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const { TEST_KILL_AT: step, TEST_COPYING: copying } = process.env;

/** A call of SQLite that has no end. */
const endless = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
  SELECT COUNT(*) FROM n WHERE i <> ?`;

// As soon as the command has printed that it is at the step.
if (step !== undefined) {
  const write = process.stdout.write.bind(process.stdout) as (...args: unknown[]) => boolean;
  process.stdout.write = (...args: unknown[]) => {
    const isWritten = write(...args);
    if (`${args[0]}`.includes(`"step":"${step}"`)) process.kill(process.pid, 'SIGKILL');
    return isWritten;
  };
}

// When the process that copies begins with it; its process ID is in the file `copying` then.
if (copying !== undefined) {
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (sql, ...rest) {
    if (sql !== 'VACUUM INTO ?') return prepare.call(this, sql, ...rest);
    writeFileSync(copying, `${process.pid}`);
    process.kill(process.ppid, 'SIGKILL');
    return prepare.call(this, endless, ...rest);
  };
}
