/** The subjects of a relay on a database that is already there, without sockets and without jobs. */

import { accountSigner, deriveRelayId, encodeBase64url, Network } from '@posthouse/protocol';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { pino } from 'pino';
import { AccountFactsCache, accounts, LimitedRouteLookups } from '../../src/accounts/index.ts';
import { auth, WaitingChallenges } from '../../src/auth/index.ts';
import { BlockList, blocks } from '../../src/blocks/index.ts';
import { channels } from '../../src/channels/index.ts';
import type { RelayContext } from '../../src/context.ts';
import { WorkerKeySealer } from '../../src/crypto/key-sealer.ts';
import { SignatureVerifier } from '../../src/crypto/verifier.ts';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { Dispatcher } from '../../src/dispatch/dispatcher.ts';
import { LongWork } from '../../src/dispatch/long-work.ts';
import { combineModules } from '../../src/dispatch/module-set.ts';
import { RelayDispatcher } from '../../src/dispatch/relay-dispatcher.ts';
import { RelayQueryLimiter } from '../../src/dispatch/relay-query-limiter.ts';
import { RelayTexts } from '../../src/dispatch/relay-texts.ts';
import { noRelayClient, noRoutes } from '../../src/federation/no-federation.ts';
import { groups } from '../../src/groups/index.ts';
import { JobBackoff } from '../../src/jobs/retry-backoff.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import { messages } from '../../src/messages/index.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { RestoreLosses } from '../../src/observability/restore-losses.ts';
import { noPolicy } from '../../src/policy/index.ts';
import { registration } from '../../src/registration/index.ts';
import { SessionCache } from '../../src/sessions/session-cache.ts';
import { DailyByteCounts } from '../../src/usage/index.ts';

export const network = new Network({
  context: 'neo:860833102:0x1234567890abcdef1234567890abcdef12345678',
  primitives: nodePrimitives,
});

export const modules = [registration, auth, accounts, messages, groups, channels, blocks];

/** Limits of one who is refused nothing for coming often. */
export const withoutRateLimits: RelayLimits = {
  ...defaultLimits,
  ...{ accountRate: 1e9, accountBurst: 1e9, addressRate: 1e9, addressBurst: 1e9 },
  ...{ relayQueryRate: 1e9, relayQueryBurst: 1e9 },
  ...{ accountDailyBytes: 1e15, groupDailyBytes: 1e15, channelDailyBytes: 1e15 },
  ...{ accountStoredBytes: 1e15, accountReceivedDailyBytes: 1e15 },
  ...{ groupStoredBytes: 1e15, channelStoredBytes: 1e15 },
  ...{ foreignRelayDailyBytes: 1e15, foreignDailyBytes: 1e15 },
  ...{ challenges: 1e9, challengesPerAddress: 1e9, challengesOfAccount: 1e9 },
  ...{ stagedStatesPerAddress: 1e9, accountsPerAddress: 1e9 },
  ...{ sessionsPerMinute: 1e9, sessionsOfDevice: 1e9, sessionsOfAccount: 1e9 },
};

export const origin = 'https://relay.example';

/** The keys of a relay made from one byte. */
export function relayKeys(byte: number) {
  const privateKey = new Uint8Array(32).fill(byte);
  const { publicKey } = accountSigner(network, privateKey);
  return { privateKey, publicKey, relayId: deriveRelayId(network, publicKey) };
}

/** The byte of the relay that most tests use alone. */
export const defaultRelay = 0x77;
export const { publicKey: relayPublicKey } = relayKeys(defaultRelay);

/** What is the caller's to choose. */
type Parts = Pick<
  RelayContext,
  | 'storage'
  | 'clock'
  | 'limits'
  | 'verifier'
  | 'routeDirectory'
  | 'relayClient'
  | 'registryStatus'
  | 'bus'
> &
  Partial<Pick<RelayContext, 'jobs' | 'policy' | 'registration'>>;

/** Parts of a relay that knows no other one, in one process. */
export function partsOfOneRelay(): Omit<Parts, 'storage' | 'clock' | 'limits' | 'jobs'> {
  return {
    verifier: new SignatureVerifier(),
    routeDirectory: noRoutes,
    relayClient: noRelayClient,
    registryStatus: { isActive: () => Promise.resolve(true) },
    bus: new MemoryBus((error) => {
      throw error;
    }),
  };
}

/** Puts the modules of a relay on a database with its schema. */
export function openModules(
  parts: Parts,
  keys: ReturnType<typeof relayKeys>,
): {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly relayDispatcher: RelayDispatcher;
} {
  const { storage, clock, bus } = parts;
  const log = pino({ level: 'silent' });
  const metrics = new Metrics();
  const blockList = new BlockList(parts);
  const context: RelayContext = {
    jobs: { wake: () => {} },
    // What keeps accounts out has tests of its own.
    registration: { mode: 'open' },
    dailyBytes: new DailyByteCounts({ ...parts, log }),
    policy: noPolicy,
    keySealer: new WorkerKeySealer(),
    ...parts,
    network,
    random: nodeRandom,
    identity: {
      relayId: keys.relayId,
      publicKey: keys.publicKey,
      peerId: 'unused',
      sign: (message) => encodeBase64url(nodePrimitives.p256.sign(keys.privateKey, message)),
    },
    blocks: blockList,
    sessions: new SessionCache({ storage, clock, bus, blocks: blockList, limits: parts.limits }),
    challenges: new WaitingChallenges(parts),
    knownAccounts: new AccountFactsCache(parts),
    availability: { isCutOff: false, onCutOff: () => new DisposableStack() },
    disk: { isLow: () => false },
    backoff: new JobBackoff(),
    routeLookups: new LimitedRouteLookups({ clock, limits: parts.limits }),
    relayQueries: new RelayQueryLimiter(parts),
    restoreLosses: new RestoreLosses({ clock, log, metrics }),
    metrics,
    log,
  };
  const { handlers, relayHandlers } = combineModules(modules);
  return {
    context,
    dispatcher: new Dispatcher(context, handlers),
    relayDispatcher: new RelayDispatcher(
      context,
      relayHandlers,
      new RelayTexts({
        limits: parts.limits,
        turns: new CallTurns(clock),
        longWork: new LongWork(),
      }),
    ),
  };
}
