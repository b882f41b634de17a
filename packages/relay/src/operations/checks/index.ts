/** The list of checks of `posthouse check` and `posthouse doctor`, and how they are run. */
import { certificateFiles } from './certificate-files.ts';
import { type Check, type CheckResult, failed, skipped } from './check.ts';
import { CheckedRelay, type CheckedRelayOptions } from './checked-relay.ts';
import { clock } from './clock.ts';
import { clockOfOthers } from './clock-of-others.ts';
import { configuration } from './configuration.ts';
import { dataFolder } from './data-folder.ts';
import { database } from './database.ts';
import { descriptor } from './descriptor.ts';
import { diskSpace } from './disk-space.ts';
import { keys } from './keys.ts';
import { listener } from './listener.ts';
import { listed, peerPort } from './peer-port.ts';
import { publicCertificate } from './public-certificate.ts';
import { publicDescriptor } from './public-descriptor.ts';
import { publicWebSocket } from './public-websocket.ts';
import { registryRecord } from './registry-record.ts';

export type { CheckResult, Outcome } from './check.ts';

/** Every check, in the order in which they run; one comes after those that it needs. */
export const checks: readonly Check[] = [
  configuration,
  dataFolder,
  diskSpace,
  keys,
  certificateFiles,
  database,
  clock,
  descriptor,
  listener,
  registryRecord,
  publicCertificate,
  publicDescriptor,
  publicWebSocket,
  clockOfOthers,
  peerPort,
  listed,
];

/** Milliseconds that a check of the network has for each of its connections. */
const patience = 20_000;

/**
 * Runs the checks of a relay one after another, whether the relay runs or not.
 *
 * @param options.network whether to run those that ask other machines, too
 * @example
 * for await (const { check, outcome } of runChecks({ load, migrations, network: false })) {
 *   if (outcome === 'failed') process.exitCode = 1;
 * }
 */
export async function* runChecks({
  network,
  ...options
}: CheckedRelayOptions & { readonly network: boolean }): AsyncGenerator<CheckResult> {
  await using relay = new CheckedRelay(options);
  const unmet = new Set<string>();
  for (const check of checks) {
    if (check.scope === 'network' && !network) continue;
    const result = await runCheck(check, relay, unmet);
    if (result.outcome === 'failed') unmet.add(check.name);
    yield result;
  }
}

async function runCheck(
  check: Check,
  relay: CheckedRelay,
  unmet: Set<string>,
): Promise<CheckResult> {
  const { name, needs = [], cure } = check;
  const missing = needs.find((one) => unmet.has(one));
  if (missing !== undefined) {
    // What needs this one is skipped as well.
    unmet.add(name);
    return { check: name, ...skipped(`not checked, since "${missing}" failed`) };
  }
  try {
    return { check: name, ...(await check.find(relay, AbortSignal.timeout(patience))) };
  } catch (error) {
    return { check: name, ...failed(wordsOf(error), cure) };
  }
}

/** Says what failed, with the cause that the system gave. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'no answer in time';
  return error.message;
}
