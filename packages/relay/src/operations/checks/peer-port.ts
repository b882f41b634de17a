import { classifyEndpoint } from '@posthouse/protocol';
import { formatMultiaddr } from '@posthouse/protocol/federation';
import type { DialOutcome, ReachabilityReport, RelayReport } from '../../federation/index.ts';
import { type Check, type Finding, failed, notRunning, ok, skipped, warning } from './check.ts';
import type { CheckedRelay } from './checked-relay.ts';

type Dialled = Extract<RelayReport, { readonly kind: 'dialled' }>;

const restart = 'start the relay with this configuration, then run the command again';

const openPort =
  'open the port of federation.listen in the firewall, forward it to this machine, and let public.peer name the address at which others reach it';

/** What other relays met at an address, in words. */
const words: Readonly<Record<DialOutcome, string>> = {
  reached: 'reached',
  refused: 'refused the connection, or does not lead to a public address',
  timed_out: 'did not answer in time, as if a firewall dropped the connection',
  wrong_peer: 'is the address of another relay, with another Peer ID',
};

/** Whether other relays reach the port for relays (07 §B2): they try, and tell. */
export const peerPort: Check = {
  name: 'peer port',
  scope: 'relays',
  needs: ['database', 'descriptor'],
  cure: 'try again',
  async find(relay) {
    const report = await reportOf(relay);
    return 'outcome' in report ? report : await judge(relay, report);
  },
};

/** Whether other relays name this one to others, by which relays find each other (07 §B7). */
export const listed: Check = {
  name: 'known to others',
  scope: 'relays',
  needs: ['database', 'descriptor'],
  cure: 'try again',
  async find(relay) {
    const report = await reportOf(relay);
    if ('outcome' in report) return skipped(report.seen);
    const dialled = dialledOf(report);
    if (dialled.length === 0) return skipped('no relay that was asked can tell');
    const naming = dialled.filter((one) => one.listed).length;
    const seen = `named to other relays by ${naming} of ${relays(dialled.length)}`;
    return naming > 0 ? ok(seen) : warning(seen, openPort);
  },
};

/** What the running relay reported, or why there is no report. */
async function reportOf(relay: CheckedRelay): Promise<ReachabilityReport | Finding> {
  if (relay.listens.relays === undefined) {
    return skipped('federation.listen is empty: this relay is alone, no other relay can reach it');
  }
  if (!relay.isRunning) return notRunning;
  const found = await relay.reachability;
  if (found.kind === 'report') {
    const { report } = found;
    if (report.active === 0) return skipped('the registry lists no other active relay');
    if (report.connected > 0) return report;
    return failed(
      `the relay is connected with none of ${relays(report.active)} in the registry`,
      '`posthouse peers` says why for each relay',
    );
  }
  if (found.kind === 'no_answer') {
    return failed('the running relay gave no answer within a minute', 'try again later');
  }
  return failed('no running relay uses this database, or it has federation.listen empty', restart);
}

async function judge(relay: CheckedRelay, report: ReachabilityReport): Promise<Finding> {
  const dialled = dialledOf(report);
  if (dialled.length === 0) return withoutDials(report);
  const findings: string[] = [];
  let reached = 0;
  const own = await ownAddresses(relay);
  for (const address of own) {
    const outcomes = dialled.flatMap((one) => one.addresses.filter((at) => at.address === address));
    const good = outcomes.filter(({ outcome }) => outcome === 'reached').length;
    reached += good;
    const bad = outcomes.find(({ outcome }) => outcome !== 'reached');
    if (bad !== undefined) {
      findings.push(
        `${address} ${words[bad.outcome]} (${outcomes.length - good} of ${relays(outcomes.length)})`,
      );
    } else if (outcomes.length > 0) findings.push(`${address} reached by ${relays(good)}`);
  }
  if (findings.length === 0) {
    return warning(
      `${relays(dialled.length)} dialled other addresses than ${own.join(', ')}: they know an earlier descriptor`,
      'try again in ten minutes',
    );
  }
  const all = dialled.length * own.length;
  const seen = findings.join('; ');
  if (reached === all) return ok(seen);
  return reached === 0 ? failed(seen, openPort) : warning(seen, openPort);
}

/** Judges by the connections, if no relay that was asked has dialled. */
function withoutDials({ relays: asked, connected, inbound }: ReachabilityReport): Finding {
  const busy = asked.flatMap((one) => (one.kind === 'busy' ? [one.retryAfter] : []));
  if (busy.length > 0) {
    const wait = Math.min(...busy);
    return skipped(
      `others dialled this relay a moment ago: run the command again in ${wait} seconds`,
    );
  }
  const why = asked.every(({ kind }) => kind === 'not_supported')
    ? `none of ${relays(asked.length)} that were asked can dial back on request (it takes Posthouse)`
    : `none of ${relays(asked.length)} that were asked answered`;
  const seen = `${why}; ${inbound} of ${relays(connected)} connected with this one opened the connection themselves`;
  return inbound > 0 ? ok(`${seen}, so the port is open to them`) : warning(seen, openPort);
}

const dialledOf = ({ relays: asked }: ReachabilityReport) =>
  asked.filter((one): one is Dialled => one.kind === 'dialled');

const relays = (count: number) => `${count} ${count === 1 ? 'relay' : 'relays'}`;

/** The own addresses for relays, as others name them. What others name in addition is ignored. */
async function ownAddresses(relay: CheckedRelay): Promise<string[]> {
  const { endpoints } = await relay.descriptor;
  return endpoints.flatMap((item) => {
    const endpoint = classifyEndpoint(item);
    if (endpoint.kind !== 'libp2p') return [];
    const { family, host, port } = endpoint.address;
    return [formatMultiaddr({ family, host, port })];
  });
}
