import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { type Check, failed, ok, warning } from './check.ts';

/** Whether the data folder is there, private, and writable. */
export const dataFolder: Check = {
  name: 'data folder',
  scope: 'local',
  needs: ['configuration'],
  cure: 'create it with `posthouse init`, or correct the setting `data`',
  async find({ config: { data } }) {
    const { mode } = await stat(data);
    try {
      await access(data, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch {
      return failed(
        `${data}: this user cannot read and write it`,
        'run the command as the user that runs the relay, or give the folder to that user (chown)',
      );
    }
    if ((mode & 0o077) === 0) return ok(data);
    return warning(
      `${data}: other users of this machine can enter it (mode ${(mode & 0o777).toString(8)})`,
      `run \`chmod 700 ${data}\``,
    );
  },
};
