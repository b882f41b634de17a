import { descriptorPeerId, type RelayDescriptor } from '@posthouse/protocol';
import { formatPeerId } from '@posthouse/protocol/federation';
import { parseDescriptor, verifyAgainstRecord } from '../../federation/index.ts';
import { type Check, failed, notRunning, ok } from './check.ts';
import type { CheckedRelay } from './checked-relay.ts';

const elsewhere =
  'let the name in public.https lead to this relay: correct DNS, the proxy, or the port forwarding';

/**
 * Whether other machines get this relay's descriptor under its public name, fetched and verified as
 * other relays do (07 §A9).
 */
export const publicDescriptor: Check = {
  name: 'public descriptor',
  scope: 'network',
  needs: ['descriptor'],
  cure: 'let the name in public.https lead to the running relay, with a valid certificate; a public name must not lead to a private address (see /etc/hosts on this machine)',
  async find(relay, signal) {
    if (!relay.isRunning) return notRunning;
    const own = await relay.descriptor;
    const endpoint = await relay.endpoint;
    const value = parseDescriptor(relay, await (await relay.fetcher).fetch(endpoint, signal));
    const found = (value as Partial<RelayDescriptor> | null)?.relay_id;
    if (found !== own.relay_id) {
      return failed(`another relay answers at ${endpoint}, or none`, elsewhere);
    }
    const fetched = await verifyAgainstRecord(verifying(relay), value, {
      ...{ relay_id: own.relay_id, endpoint, status: 'active', updated_at: 0 },
    });
    const [ownPeer, peer] = [own, fetched].map((one) => formatPeerId(descriptorPeerId(one)));
    if (ownPeer !== peer) {
      return failed(
        `the descriptor at ${endpoint} has the Peer ID ${peer}, and keys/peer.key has ${ownPeer}`,
        'start the relay again, and use the same keys/peer.key for all its processes',
      );
    }
    const [expected = [], present = []] = [own, fetched].map(({ endpoints }) =>
      hasChosenPort(relay) ? endpoints.map(withoutPort) : endpoints,
    );
    const missing = expected.filter((item) => !present.includes(item));
    const added = present.filter((item) => !expected.includes(item));
    if (missing.length + added.length > 0) {
      const changes = [
        ...missing.map((item) => `lacks ${item}`),
        ...added.map((item) => `has ${item}`),
      ];
      return failed(
        `the descriptor at ${endpoint} is of another configuration: it ${changes.join(', ')}`,
        'start the relay again with this configuration, or check the one that it runs with',
      );
    }
    const until = new Date(fetched.expires_at * 1_000).toISOString().slice(0, 10);
    return ok(`fetched from ${endpoint}: it is this relay's, and valid until ${until}`);
  },
};

/** Whether the system chooses the port for other relays: only the running relay knows it. */
function hasChosenPort({ config, listens }: CheckedRelay): boolean {
  return config.public.peer === '' && listens.relays?.port === 0;
}

const withoutPort = (endpoint: string) => endpoint.replace(/^(\/.*\/tcp\/)\d+/, '$1…');

function verifying({ network, clock, verifier, limits }: CheckedRelay) {
  return { network, clock, verifier, limits };
}
