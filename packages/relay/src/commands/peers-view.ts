/** Formats what is known of other relays for terminals. */
import { terminalColumns } from '@posthouse/protocol/terminal';
import { instant, oneLine, shortened } from './terminal-output.ts';

/** Another relay, as the verbs list it. Times are Unix seconds, `null` if unknown. */
export interface Peer {
  readonly relay_id: string;
  readonly name: string;
  readonly state: string;
  readonly since: number | null;
  readonly connected_processes: number;
  readonly addresses: readonly string[];
  readonly mail_waiting: number;
  /** Whether there are more than those. */
  readonly mail_more: boolean;
  readonly mail_oldest: number | null;
  readonly last_error: string | null;
  readonly next_try: number | null;
}

/** Mail whose recipients are at home on no known relay. */
export interface UnlocatedMail {
  readonly messages: number;
  /** Whether there are more than those. */
  readonly more: boolean;
  readonly oldest: number;
}

const headings = [
  ...['relay', 'name', 'state', 'since', 'mail', 'oldest', 'next try', 'addresses', 'last error'],
];

/** Formats a table of relays; `processes` are those of this relay that run. */
export function peerTable(
  peers: readonly Peer[],
  { now, processes }: { readonly now: number; readonly processes: number },
): string[] {
  const time = (seconds: number | null) => (seconds === null ? '-' : instant(seconds));
  const rows = peers.map((peer) => {
    const { relay_id, name, since, addresses, next_try } = peer;
    return [
      relay_id,
      oneLine(name) || '-',
      stateText(peer, processes),
      time(since),
      `${peer.mail_waiting}${peer.mail_more ? '+' : ''}`,
      time(peer.mail_oldest),
      next_try !== null && next_try <= now ? 'now' : time(next_try),
      oneLine(addresses.join(' ')) || '-',
      peer.state === 'failing' ? shortened(peer.last_error ?? '') : '',
    ];
  });
  return terminalColumns([headings, ...rows]);
}

/** Formats the state; of a connection that only some processes have, with how many. */
function stateText({ state, connected_processes: count }: Peer, processes: number): string {
  return state === 'connected' && count < processes ? `${state} ${count}/${processes}` : state;
}

/** Describes the mail whose recipients are at home on no known relay. */
export function unlocatedNote({ messages, more, oldest }: UnlocatedMail): string {
  const many = more ? `${messages} or more` : String(messages);
  const count = messages === 1 ? '1 message waits' : `${many} messages wait`;
  return `${count} for accounts whose relay is not known, the oldest since ${instant(oldest)}`;
}
