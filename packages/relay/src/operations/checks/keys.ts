import { type Check, ok } from './check.ts';

/** Whether both keys are there, readable, and readable by the relay's user alone. */
export const keys: Check = {
  name: 'keys',
  scope: 'local',
  needs: ['configuration'],
  cure: 'create the keys with `posthouse init`, restore them from a backup, or run `chmod 600` on them',
  async find({ identity }) {
    const { relayId, peerId } = await identity;
    return ok(`relay ID ${relayId}, Peer ID ${peerId}`);
  },
};
