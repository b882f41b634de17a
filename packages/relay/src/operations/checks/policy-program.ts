import { requireProgram } from '../../policy/index.ts';
import { type Check, ok, skipped } from './check.ts';

/** Whether the program of `policy.command` can be run, and is safe from other users. */
export const policyProgram: Check = {
  name: 'policy program',
  scope: 'local',
  needs: ['configuration'],
  cure: 'correct `policy.command`, or the mode of the program and its folder; the relay does not start without it',
  async find({ config: { policy } }) {
    const [path] = policy.command;
    if (path === undefined) return skipped('`policy.command` is empty: no program decides');
    await requireProgram(path);
    return ok(path);
  },
};
