/** What is known of other relays: registry, connections, failures, blocks, and mail that waits. */
import type { JsonObject } from '@posthouse/protocol/json';
import { type Block, readBlocksOf } from '../../blocks/index.ts';
import {
  type KnownRelay,
  type PeerConnection,
  readConnections,
  readKnownRelays,
} from '../../federation/index.ts';
import { readDestinations, readWaitingMail, type WaitingMail } from '../../messages/index.ts';
import type { Storage } from '../../storage/types.ts';

/** Messages that are counted for one relay: of a long queue, that it is long is enough. */
const mostCounted = 500;

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
  readonly mail: WaitingMail | undefined;
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
  readonly unlocated: WaitingMail | undefined;
}

/**
 * Reads the relays that the registry names, and those that are blocked or have mail waiting. Costs as much
 * as the page has relays, however long the delivery queue is.
 */
export async function readPeers(storage: Storage, range: Range): Promise<Peers> {
  const { now, from, limit } = range;
  const { known, blocked, connections, destinations } = await storage.read(async (tx) => ({
    destinations: await readDestinations(tx, { from, limit }),
    known: await readKnownRelays(tx, { from, limit }),
    blocked: await readBlocksOf(tx, 'relay', { now, limit: range.blockedRelays }),
    connections: await readConnections(tx, now),
  }));
  const relays = new Map(known.map((relay) => [relay.relayId, relay]));
  const blocks = new Map(blocked.map((block) => [block.id, block]));
  // After the last relay of a list that was not read to its end there may be others of that list.
  const ends = [[...relays.keys()], destinations].flatMap((list) =>
    list.length < limit ? [] : list.slice(-1),
  );
  const isInPage = (id: string) => id >= from && ends.every((last) => id <= last);
  const ids = new Set([...relays.keys(), ...blocks.keys(), ...destinations]);
  const page = [...ids].filter(isInPage).sort().slice(0, limit);
  const mail = await readMail(
    storage,
    page.filter((id) => destinations.includes(id)),
  );
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
    unlocated: await storage.read((tx) => readWaitingMail(tx, '', mostCounted)),
  };
}

/** Counts what waits for each relay, each in a read of its own, so that no other waits for all. */
async function readMail(
  storage: Storage,
  destinations: readonly string[],
): Promise<Map<string, WaitingMail>> {
  const mail = new Map<string, WaitingMail>();
  for (const destination of destinations) {
    const found = await storage.read((tx) => readWaitingMail(tx, destination, mostCounted));
    if (found !== undefined) mail.set(destination, found);
  }
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
    mail_more: mail?.hasMore ?? false,
    mail_oldest: mail?.oldest ?? null,
    last_ok: relay?.lastOk ?? null,
    last_error: relay?.lastError ?? null,
    next_try: (isFailing ? relay?.failing?.retryAt : undefined) ?? null,
    block_reason: view.block?.reason ?? null,
  };
}

/** Converts mail whose recipients are at home on no known relay to its JSON form. */
export function unlocatedWire(mail: WaitingMail | undefined): JsonObject | null {
  if (mail === undefined) return null;
  const { messages, hasMore, oldest } = mail;
  return { messages, more: hasMore, oldest };
}
