/** Faults of a relay that asks others and delivers to them. */
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import type { Relay } from '@posthouse/relay';
import { homeOf } from '../../../relay/src/accounts/index.ts';
import type { RelayAnswer } from '../../../relay/src/context.ts';
import { SignatureVerifier } from '../../../relay/src/crypto/verifier.ts';
import { Dispatcher } from '../../../relay/src/dispatch/dispatcher.ts';
import { JsonText } from '../../../relay/src/dispatch/handler.ts';
import { RelayDispatcher } from '../../../relay/src/dispatch/relay-dispatcher.ts';
import { answered, calling, jsonOf, requested, withoutMember } from './calls.ts';
import { all, replace, type SeededFault } from './replace.ts';

const accepted = (): RelayAnswer => ({
  kind: 'result',
  value: { status: 'target_accepted', accepted_at: Math.floor(Date.now() / 1_000) },
});

const activeForGood = () =>
  answered('device.status', 'result', (answer) => ({
    ...answer,
    value: { status: 'active', expires_at: 4_000_000_000 },
  }));

/** Passes on what a home relay answered, although it does not verify. */
function passingOn(method: 'device.state.resolve' | 'profile.resolve'): Disposable {
  let last: JsonValue = null;
  return all(
    calling(method, async (call) => {
      const answer = await call();
      if (answer.kind === 'result') last = answer.value;
      return answer;
    }),
    replace(
      Dispatcher.prototype,
      'answer',
      (original) =>
        async function (this: Dispatcher, request) {
          const answer = await original.call(this, request);
          if (answer.ok || request.method !== method || answer.error.code !== 'bad_gateway') {
            return answer;
          }
          return { ok: true, result: new JsonText(canonicalJson(last)) };
        },
    ),
  );
}

/** Believes that each hint comes from the home relay of its account. */
function believingHints({ context }: Relay): Disposable {
  return replace(
    RelayDispatcher.prototype,
    'answer',
    (original) =>
      async function (this: RelayDispatcher, frame, peer) {
        const request = jsonOf(frame);
        const { account } = (request?.params ?? {}) as JsonObject;
        if (request?.method !== 'device.status.changed' || typeof account !== 'string') {
          return await original.call(this, frame, peer);
        }
        const { clock, identity, storage } = context;
        const home = await storage.read((tx) => homeOf(tx, account, identity.relayId, clock.now()));
        const relayId = home.kind === 'elsewhere' ? home.relayId : peer.relayId;
        return await original.call(this, frame, { ...peer, relayId });
      },
  );
}

export const sourceFaults: readonly SeededFault[] = [
  {
    fault: 'forwards a state of a lower revision',
    check: 'source.device.state.resolve/refuses-lower-revision',
    seed: () => passingOn('device.state.resolve'),
  },
  {
    fault: 'forwards a state without the device that signed the invite',
    check: 'source.device.state.resolve/refuses-without-the-inviter',
    seed: () => passingOn('device.state.resolve'),
  },
  {
    fault: 'forwards a profile that does not verify',
    check: 'source.profile.resolve/refuses-altered-profile',
    seed: () => passingOn('profile.resolve'),
  },
  {
    fault: 'forwards a query that does not verify',
    check: 'source.device.state.resolve/own-signature',
    seed: () =>
      replace(
        SignatureVerifier.prototype,
        'verify',
        (original) =>
          async function (this: SignatureVerifier, checks, what) {
            if (what !== 'device query') await original.call(this, checks, what);
          },
      ),
  },
  {
    fault: 'uses the answer of a relay that was the home before',
    check: 'source.device.status/moved',
    seed: () => {
      const known = new Map<string, RelayAnswer>();
      return calling('device.status', async (call, { params }) => {
        const device = canonicalJson(params);
        const answer = known.get(device) ?? (await call());
        known.set(device, answer);
        return answer;
      });
    },
  },
  {
    fault: 'opens a session by an answer without an end',
    check: 'source.device.status/no-session-active-without-end',
    seed: () =>
      answered('device.status', 'result', (answer) => ({
        ...answer,
        value: { expires_at: 4_000_000_000, ...(answer.value as JsonObject) },
      })),
  },
  {
    fault: 'opens a session that outlives the certificate',
    check: 'source.device.status/signs-in',
    seed: activeForGood,
  },
  {
    fault: 'uses the answer about a device past its end',
    check: 'source.device.status/ends-with-certificate',
    seed: activeForGood,
  },
  {
    fault: 'uses an answer during which a hint arrived',
    check: 'source.device.status/hint-during-question',
    seed: () => requested('device.status.changed', () => ({})),
  },
  {
    fault: 'ignores hints of the home relay',
    check: 'source.device.status/hint',
    seed: () => requested('device.status.changed', () => ({})),
  },
  {
    fault: 'believes hints of any relay',
    check: 'source.device.status/foreign-hint',
    seed: believingHints,
  },
  {
    fault: 'delivers twice',
    check: 'source.message.deliver/once',
    seed: () =>
      calling('message.deliver', async (call) => {
        await call();
        return await call();
      }),
  },
  {
    fault: 'changes the parameters when it repeats a delivery',
    check: 'source.message.deliver/retries-internal-error',
    seed: () => {
      const tried = new Set<string>();
      return calling('message.deliver', async (call, { params }, again) => {
        const text = canonicalJson(params);
        if (tried.has(text)) return await again(withoutMember('authorization')(params));
        tried.add(text);
        return await call();
      });
    },
  },
  {
    fault: 'takes a lost answer for an acceptance',
    check: 'source.message.deliver/retries-a-reset',
    seed: () => answered('message.deliver', 'unknown', accepted),
  },
  {
    fault: 'accepts an answer with another id',
    check: 'source.message.deliver/retries-another-id',
    seed: () => answered('message.deliver', 'invalid', accepted),
  },
  {
    fault: 'does not wait for retry_after',
    check: 'source.message.deliver/waits',
    seed: () => answered('message.deliver', 'refused', (answer) => ({ ...answer, retryAfter: 0 })),
  },
  {
    fault: 'delivers to another relay although the first may have accepted',
    check: 'source.message.deliver/stays-after-unknown-outcome',
    seed: () =>
      answered('message.deliver', 'unknown', () => ({
        kind: 'refused',
        code: 'route_stale',
        message: '',
      })),
  },
];
