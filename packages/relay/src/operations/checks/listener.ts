import { connect } from 'node:net';
import type { ListenAddress } from '../../config/addresses.ts';
import { type Check, failed, ok, skipped, warning } from './check.ts';

/** Whether a process accepts connections at the addresses to listen on: the relay runs. */
export const listener: Check = {
  name: 'running relay',
  scope: 'local',
  needs: ['configuration'],
  cure: 'correct `listen` and `federation.listen`',
  async find(relay, signal) {
    const { clients, relays } = relay.listens;
    if (clients.port === 0) {
      relay.isRunning = true;
      return skipped('`listen` has port 0, so the port of a running relay is not known here');
    }
    relay.isRunning = await accepts(clients, signal);
    if (!relay.isRunning) {
      return warning(
        `the relay does not run: nothing accepts connections at ${shown(clients)}`,
        'start it with `posthouse serve`',
      );
    }
    const seen = `accepts clients at ${shown(clients)}`;
    if (relays === undefined || relays.port === 0) return ok(seen);
    if (await accepts(relays, signal)) return ok(`${seen}, and relays at ${shown(relays)}`);
    return failed(
      `${seen}, but nothing accepts relays at ${shown(relays)}, which federation.listen names`,
      'start the relay again with this configuration',
    );
  },
};

const shown = ({ host, port }: ListenAddress) =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Tries an address of this machine; one that stands for all of them is tried at loopback. */
async function accepts({ host, port }: ListenAddress, signal: AbortSignal): Promise<boolean> {
  const target = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const socket = connect({ host: target, port, signal });
  try {
    return await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}
