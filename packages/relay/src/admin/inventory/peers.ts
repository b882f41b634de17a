/** What is known of other relays: registry, connections, failures, blocks, and mail that waits. */
import type { JsonObject } from '@posthouse/protocol/json';
import { type Block, readBlocksOf } from '../../blocks/index.ts';
import {
  type KnownRelay,
  type PeerConnection,
  readConnections,
  readKnownRelays,
} from '../../federation/index.ts';
import { type MessageKey, readWaitingMessages } from '../../messages/index.ts';
import type { Storage } from '../../storage/types.ts';
import { scan, step } from './scan.ts';

/** Messages that wait for a relay, and when the oldest of them was accepted. */
interface Mail {
  messages: number;
  oldest: number;
}

/** Another relay. Times are Unix seconds. */
export interface PeerView {
  readonly relayId: string;
  /** Host of its registered address. */
  readonly name: string;
  /**
   * `connected`: a process of this relay has a connection with it. `failing`: none has, and it is
   * tried again after a pause. `disconnected`: none has, and the last attempt did not fail.
   * `unlisted`: the registry does not name it, but it is blocked or mail waits for it. `disabled` and
   * `suspended` are the registry's.
   */
  readonly state:
    | 'blocked'
    | 'disabled'
    | 'suspended'
    | 'failing'
    | 'connected'
    | 'disconnected'
    | 'unlisted';
  /** When the state began, if that is known. */
  readonly since: number | undefined;
  /** libp2p addresses without Peer ID. */
  readonly addresses: readonly string[];
  /** Present if it is connected. */
  readonly connection: PeerConnection | undefined;
  readonly relay: KnownRelay | undefined;
  readonly block: Block | undefined;
  readonly mail: Mail | undefined;
}

interface Range {
  /** Unix seconds. */
  readonly now: number;
  /** The largest number of blocks. */
  readonly blockedRelays: number;
  /** The first relay ID. */
  readonly from: string;
  readonly limit: number;
}

/** A page of other relays, in the order of their IDs. */
interface Peers {
  readonly peers: readonly PeerView[];
  /** Running processes of this relay, if it may have several. */
  readonly processes: number;
  /** Mail whose recipients are at home on no known relay. */
  readonly unlocated: JsonObject | null;
}

/** Reads the relays that the registry names, and those that are blocked or have mail waiting. */
export async function readPeers(storage: Storage, range: Range): Promise<Peers> {
  const { now, from, limit } = range;
  const mail = await readMail(storage);
  const { known, blocked, connections } = await storage.read(async (tx) => ({
    known: await readKnownRelays(tx, { from, limit }),
    blocked: await readBlocksOf(tx, 'relay', { now, limit: range.blockedRelays }),
    connections: await readConnections(tx, now),
  }));
  const relays = new Map(known.map((relay) => [relay.relayId, relay]));
  const blocks = new Map(blocked.map((block) => [block.id, block]));
  const unlocated = mail.get('');
  mail.delete('');
  // After the last relay that was read there may be others of the registry.
  const last = known.length < limit ? undefined : known.at(-1)?.relayId;
  const isInPage = (id: string) => id >= from && (last === undefined || id <= last);
  const ids = new Set([...relays.keys(), ...blocks.keys(), ...mail.keys()]);
  const page = [...ids].filter(isInPage).sort().slice(0, limit);
  const peers = page.map((relayId) => {
    const relay = relays.get(relayId);
    const block = blocks.get(relayId);
    const connection = connections.byRelay.get(relayId);
    return {
      relayId,
      name: relay === undefined ? '' : hostOf(relay.endpoint),
      ...stateOf({ relay, block, connection }),
      addresses: addressesOf(relay?.descriptor),
      ...{ relay, block, connection, mail: mail.get(relayId) },
    };
  });
  return {
    peers,
    processes: connections.processes,
    unlocated: unlocated ? { ...unlocated } : null,
  };
}

/** Before the first message that waits. */
const start: MessageKey = { sender: '', messageId: '' };

/** Counts the delivery queue by destination. */
async function readMail(storage: Storage): Promise<Map<string, Mail>> {
  const mail = new Map<string, Mail>();
  await scan(storage, start, {
    read: (tx, after) => readWaitingMessages(tx, { after, limit: step }),
    take(waiting) {
      for (const { destination, acceptedAt } of waiting) {
        const found = mail.get(destination) ?? { messages: 0, oldest: acceptedAt };
        found.messages += 1;
        found.oldest = Math.min(found.oldest, acceptedAt);
        mail.set(destination, found);
      }
      return waiting.length < step ? undefined : waiting.at(-1);
    },
  });
  return mail;
}

function stateOf({
  relay,
  block,
  connection,
}: Pick<PeerView, 'relay' | 'block' | 'connection'>): Pick<PeerView, 'state' | 'since'> {
  if (block !== undefined) return { state: 'blocked', since: block.createdAt };
  if (relay === undefined) return { state: 'unlisted', since: undefined };
  if (relay.status !== 'active') return { state: relay.status, since: relay.updatedAt };
  // Another process may have failed to reach it meanwhile.
  if (connection !== undefined) return { state: 'connected', since: connection.since };
  if (relay.failing !== undefined) return { state: 'failing', since: relay.failing.since };
  return { state: 'disconnected', since: undefined };
}

function hostOf(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).host : endpoint;
}

/** Reads the libp2p addresses of a descriptor that was verified when it was stored. */
function addressesOf(descriptor: string | undefined): string[] {
  if (descriptor === undefined) return [];
  const { endpoints } = JSON.parse(descriptor) as { readonly endpoints: readonly string[] };
  return endpoints
    .filter((endpoint) => endpoint.startsWith('/'))
    .map((address) => address.replace(/\/p2p\/[^/]*$/, ''));
}

/** Converts a relay to its JSON form; times are Unix seconds, `null` if unknown. */
export function peerWire({ relay, mail, ...view }: PeerView): JsonObject {
  const isFailing = view.state === 'failing';
  return {
    relay_id: view.relayId,
    name: view.name,
    state: view.state,
    since: view.since ?? null,
    connected_processes: view.connection?.processes ?? 0,
    endpoint: relay?.endpoint ?? null,
    peer_id: relay?.peerId ?? null,
    addresses: [...view.addresses],
    mail_waiting: mail?.messages ?? 0,
    mail_oldest: mail?.oldest ?? null,
    last_ok: relay?.lastOk ?? null,
    last_error: relay?.lastError ?? null,
    next_try: (isFailing ? relay?.failing?.retryAt : undefined) ?? null,
    block_reason: view.block?.reason ?? null,
  };
}
