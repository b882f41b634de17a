/** Formats what is known of other relays for terminals and as JSON. */
import { terminalColumns } from '@posthouse/protocol/terminal';
import type { Block } from '../blocks/index.ts';
import type { ConnectionList, KnownRelay, PeerConnection } from '../federation/index.ts';
import type { WaitingMail } from '../messages/index.ts';
import { instant, oneLine, shortened } from './terminal-output.ts';

/** What storage holds about other relays, at one time. */
export interface PeerFacts {
  readonly known: readonly KnownRelay[];
  readonly blocked: readonly Block[];
  readonly mail: readonly WaitingMail[];
  readonly connections: ConnectionList;
}

/** One line of the list. Times are Unix seconds. */
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
  /** Running processes of this relay, if it may have several. */
  readonly processes: number;
  readonly relay: KnownRelay | undefined;
  readonly block: Block | undefined;
  readonly mail: WaitingMail | undefined;
}

/** Combines what is stored about each relay; sorted by name. */
export function peerViews({ known, blocked, mail, connections }: PeerFacts): PeerView[] {
  const relays = new Map(known.map((relay) => [relay.relayId, relay]));
  const blocks = new Map(blocked.map((block) => [block.id, block]));
  const waiting = new Map(mail.map((one) => [one.destination, one]));
  waiting.delete('');
  const ids = new Set([...relays.keys(), ...blocks.keys(), ...waiting.keys()]);
  const views = [...ids].map((relayId) => {
    const relay = relays.get(relayId);
    const block = blocks.get(relayId);
    const connection = connections.byRelay.get(relayId);
    return {
      relayId,
      name: relay === undefined ? '' : hostOf(relay.endpoint),
      ...stateOf({ relay, block, connection }),
      addresses: addressesOf(relay?.descriptor),
      ...{ relay, block, connection, mail: waiting.get(relayId) },
      processes: connections.processes,
    };
  });
  const key = ({ name, relayId }: PeerView) => `${name} ${relayId}`;
  return views.sort((a, b) => (key(a) < key(b) ? -1 : 1));
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

const headings = [
  ...['relay', 'name', 'state', 'since', 'mail', 'oldest', 'next try', 'addresses', 'last error'],
];

/** Formats a table of relays. */
export function peerTable(views: readonly PeerView[], now: number): string[] {
  const time = (seconds: number | undefined) => (seconds === undefined ? '-' : instant(seconds));
  const rows = views.map((view) => {
    const { relayId, name, state, since, addresses, relay, mail } = view;
    const retryAt = state === 'failing' ? relay?.failing?.retryAt : undefined;
    return [
      relayId,
      oneLine(name) || '-',
      stateText(view),
      time(since),
      String(mail?.messages ?? 0),
      time(mail?.oldest),
      retryAt !== undefined && retryAt <= now ? 'now' : time(retryAt),
      oneLine(addresses.join(' ')) || '-',
      state === 'failing' ? shortened(relay?.lastError ?? '') : '',
    ];
  });
  return terminalColumns([headings, ...rows]);
}

/** Formats the state; of a connection that only some processes have, with how many. */
function stateText({ state, connection, processes }: PeerView): string {
  const count = connection?.processes ?? 0;
  return state === 'connected' && count < processes ? `${state} ${count}/${processes}` : state;
}

/** Describes the mail whose recipients are at home on no known relay; `undefined` if there is none. */
export function unlocatedNote({ mail }: PeerFacts): string | undefined {
  const unlocated = mail.find(({ destination }) => destination === '');
  if (unlocated === undefined) return undefined;
  const { messages, oldest } = unlocated;
  const count = messages === 1 ? '1 message waits' : `${messages} messages wait`;
  return `${count} for accounts whose relay is not known, the oldest since ${instant(oldest)}`;
}

/** Converts a relay to its JSON form; times are Unix seconds, `null` if unknown. */
export function wireOfPeer({ relay, mail, ...view }: PeerView): object {
  const isFailing = view.state === 'failing';
  return {
    relay_id: view.relayId,
    name: view.name,
    state: view.state,
    since: view.since ?? null,
    connected_processes: view.connection?.processes ?? 0,
    endpoint: relay?.endpoint ?? null,
    peer_id: relay?.peerId ?? null,
    addresses: view.addresses,
    mail_waiting: mail?.messages ?? 0,
    mail_oldest: mail?.oldest ?? null,
    last_ok: relay?.lastOk ?? null,
    last_error: relay?.lastError ?? null,
    next_try: (isFailing ? relay?.failing?.retryAt : undefined) ?? null,
    block_reason: view.block?.reason ?? null,
  };
}
