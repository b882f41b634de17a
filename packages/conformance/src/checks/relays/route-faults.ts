/** Routes that a relay must not accept, wherever it got them from (07 §B10). */
import { encodeBase64url, type FinalRoute, Network, routeRelayInput } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { unixSeconds } from '../../fixtures/account.ts';
import { tampered } from '../../fixtures/tampered.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { type HomeAccount, routeTo } from '../../seat/home-account.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';

export interface RouteFixture {
  readonly context: TestContext;
  readonly seat: RelaySeat;
  /** An account at home at the seat; the relay under test does not know it. */
  readonly home: HomeAccount;
}

/** Signs another route of the account, by default an hour after now with the next revision. */
export async function another(
  { seat, home }: RouteFixture,
  fields: Parameters<typeof routeTo>[2] = {},
) {
  const revision = home.route.revision + 1;
  return await routeTo(home.account, seat, { revision, ...fields });
}

type Make = (fixture: RouteFixture) => Promise<JsonObject & { readonly account: string }>;

/** Signs a route that the signing functions refuse to make, by default for the network under test. */
async function signedAnyway(
  { context, seat, home }: RouteFixture,
  changes: JsonObject,
  network = context.network,
): Promise<JsonObject & { readonly account: string }> {
  const { account_signature: _, relay_signature: __, ...fields } = home.route;
  const unsigned = { ...fields, revision: fields.revision + 10, ...changes };
  const input = network.bytes(unsigned, ['account_signature', 'relay_signature']);
  const account_signature = encodeBase64url(await home.account.signer.sign(input));
  const draft = { ...unsigned, account_signature };
  const relay = await seat.signer.sign(routeRelayInput(network, draft));
  return { ...draft, relay_signature: encodeBase64url(relay) };
}

/** Makes the network whose accounts have the same IDs, with another registry. */
function otherNetwork({ context, word, primitives }: Network): Network {
  const [reference] = context.split(':0x');
  return new Network({ context: `${reference}:0x${'7'.repeat(40)}`, primitives, word });
}

/**
 * Signs the contents of a route with another signature of the relay, which is as valid: a signature
 * (r, s) of ECDSA is one with (r, n - s) too.
 */
export function withOtherSignature(route: FinalRoute): FinalRoute {
  const bytes = Buffer.from(route.relay_signature, 'base64url');
  const s = p256Order - BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const other = Buffer.from(s.toString(16).padStart(64, '0'), 'hex');
  const relay_signature = encodeBase64url(Buffer.concat([bytes.subarray(0, 32), other]));
  return { ...route, relay_signature };
}

/** Number of points of the curve P-256. */
const p256Order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const day = 86_400;

/** Routes of higher revisions with one fault each. */
export const routeFaults: Readonly<Record<string, Make>> = {
  'the-account-signature-altered': async (fixture) => {
    const route = await another(fixture);
    return { ...route, account_signature: tampered(route.account_signature) };
  },
  'the-relay-signature-altered': async (fixture) => {
    const route = await another(fixture);
    return { ...route, relay_signature: tampered(route.relay_signature) };
  },
  'no-relay-signature': async (fixture) => {
    const { relay_signature: _, ...draft } = await another(fixture);
    return draft;
  },
  'a-member-added': async (fixture) => ({ ...(await another(fixture)), note: 'added' }),
  'a-higher-revision-written-in': async (fixture) => {
    const route = await another(fixture);
    return { ...route, revision: route.revision + 5 };
  },
  'an-end-that-has-passed': (fixture) =>
    signedAnyway(fixture, { updated_at: unixSeconds() - day, expires_at: unixSeconds() - 60 }),
  'a-start-far-ahead': (fixture) => {
    const ahead = unixSeconds() + 365 * day;
    return signedAnyway(fixture, { updated_at: ahead, expires_at: ahead + day });
  },
  'a-period-over-3650-days': (fixture) =>
    signedAnyway(fixture, { expires_at: unixSeconds() + 315_360_100 }),
  'an-end-before-its-start': (fixture) => {
    const updated_at = unixSeconds() + 100;
    return signedAnyway(fixture, { updated_at, expires_at: updated_at - 10 });
  },
  'more-than-4096-bytes': (fixture) => signedAnyway(fixture, { note: 'n'.repeat(4_096) }),
  'another-type': (fixture) => signedAnyway(fixture, { $type: 'svc.account.other' }),
  'a-null-member': (fixture) => signedAnyway(fixture, { note: null }),
  'the-context-of-another-network': (fixture) =>
    signedAnyway(fixture, {}, otherNetwork(fixture.context.network)),
  'the-key-of-another-account': (fixture) =>
    signedAnyway(fixture, { account_public_key: fixture.context.account().signer.publicKey }),
  'a-relay-that-did-not-sign': async (fixture) => {
    const other = await fixture.context.seat();
    await other.connect();
    return await signedAnyway(fixture, { relay_id: other.relayId });
  },
  'an-unlisted-relay': async (fixture) => {
    const other = await fixture.context.seat({ status: 'unlisted' });
    return await routeTo(fixture.home.account, other, {
      revision: fixture.home.route.revision + 10,
    });
  },
  'a-suspended-relay': async (fixture) => {
    const other = await fixture.context.seat({ status: 'suspended' });
    return await routeTo(fixture.home.account, other, {
      revision: fixture.home.route.revision + 10,
    });
  },
};
