/** The list of checks of `posthouse check` and `posthouse doctor`, and how they are run. */
import { adminToken } from './admin-token.ts';
import { bus } from './bus.ts';
import { certificateFiles } from './certificate-files.ts';
import { type Check, type CheckResult, failed, type Scope, skipped } from './check.ts';
import { CheckedRelay, type CheckedRelayOptions } from './checked-relay.ts';
import { clientAddress } from './client-address.ts';
import { clock } from './clock.ts';
import { clockOfNodes } from './clock-of-nodes.ts';
import { clockOfOthers } from './clock-of-others.ts';
import { configuration } from './configuration.ts';
import { dataFolder } from './data-folder.ts';
import { database } from './database.ts';
import { databaseServer } from './database-server.ts';
import { descriptor } from './descriptor.ts';
import { diskSpace } from './disk-space.ts';
import { keys } from './keys.ts';
import { listener } from './listener.ts';
import { listed, peerPort } from './peer-port.ts';
import { policyProgram } from './policy-program.ts';
import { publicCertificate } from './public-certificate.ts';
import { publicDescriptor } from './public-descriptor.ts';
import { publicWebSocket } from './public-websocket.ts';
import { registryRecord } from './registry-record.ts';
import { restored } from './restored.ts';

export type { CheckResult, Outcome, Scope } from './check.ts';

/** Every check, in the order in which they run; one comes after those that it needs. */
export const checks: readonly Check[] = [
  configuration,
  dataFolder,
  diskSpace,
  keys,
  adminToken,
  policyProgram,
  certificateFiles,
  database,
  databaseServer,
  restored,
  bus,
  clock,
  descriptor,
  listener,
  registryRecord,
  publicCertificate,
  publicDescriptor,
  publicWebSocket,
  clientAddress,
  clockOfOthers,
  clockOfNodes,
  peerPort,
  listed,
];

/** From the smallest. */
const scopes: readonly Scope[] = ['local', 'network', 'relays'];

interface RunOptions extends CheckedRelayOptions {
  readonly scope: Scope;
  readonly begun?: (check: { name: string; done: number; total: number }) => void;
  readonly signal?: AbortSignal;
}

/** Milliseconds that a check of the network has for each of its connections. */
const patience = 20_000;

/**
 * Runs the checks of a relay one after another, whether the relay runs or not.
 *
 * @param options.scope how far to ask; those of smaller scopes run too
 * @param options.begun called before each check, with its name and those that ran
 * @param options.signal ends the check under way, and all
 * @example
 * for await (const { check, outcome } of runChecks({ load, migrations, scope: 'local' })) {
 *   if (outcome === 'failed') process.exitCode = 1;
 * }
 */
export async function* runChecks({
  scope,
  begun = () => {},
  signal = new AbortController().signal,
  ...options
}: RunOptions): AsyncGenerator<CheckResult> {
  await using relay = new CheckedRelay(options);
  const unmet = new Set<string>();
  const chosen = checks.filter((check) => scopes.indexOf(check.scope) <= scopes.indexOf(scope));
  for (const [done, check] of chosen.entries()) {
    begun({ name: check.name, done, total: chosen.length });
    const result = await runCheck(check, relay, { unmet, signal });
    signal.throwIfAborted();
    if (result.outcome === 'failed') unmet.add(check.name);
    yield result;
  }
}

async function runCheck(
  check: Check,
  relay: CheckedRelay,
  { unmet, signal }: { readonly unmet: Set<string>; readonly signal: AbortSignal },
): Promise<CheckResult> {
  const { name, needs = [], cure } = check;
  const missing = needs.find((one) => unmet.has(one));
  if (missing !== undefined) {
    // What needs this one is skipped as well.
    unmet.add(name);
    return { check: name, ...skipped(`not checked, since "${missing}" failed`) };
  }
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(patience)]);
    return { check: name, ...(await check.find(relay, limit)) };
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
