import { beforeAll, describe, expect, test } from 'vitest';
import {
  type AccountRoute,
  checkRoute,
  checkRouteDraft,
  cosignRoute,
  encodeBase64url,
  type FinalRoute,
  routeAccountInput,
  routeContent,
  routeRelayInput,
  routeSignatures,
  signRouteDraft,
  verifyRoute,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import {
  account,
  codeOf,
  network,
  otherAccount,
  otherRegistry,
  padded,
  relay,
  relayId,
  tampered,
  without,
} from './appendix.ts';

const facts = {
  revision: 1_730_000_000_123,
  relay_id: relayId,
  updated_at: 1_730_000_000,
  expires_at: 1_745_552_000,
};
const relayKey = { relayPublicKey: relay.publicKey };
const checkDraft = (value: unknown) => codeOf(() => checkRouteDraft(network, value));
const check = (value: unknown) => codeOf(() => checkRoute(network, value));
const verify = (value: unknown) => codeOf(() => verifyRoute(network, value, relayKey));

let draft: AccountRoute;
let route: FinalRoute;
beforeAll(async () => {
  draft = await signRouteDraft(network, account, facts);
  route = await cosignRoute(network, relay, draft);
});

/** A draft signed over whatever members it has, without any check. */
async function signed(members: Record<string, unknown>): Promise<AccountRoute> {
  const unsigned = { ...(without(draft, 'account_signature') as AccountRoute), ...members };
  const signature = await account.sign(routeAccountInput(network, unsigned));
  return { ...unsigned, account_signature: encodeBase64url(signature) };
}

/** A final route co-signed over whatever members it has, without any check. */
async function cosigned(members: Record<string, unknown>): Promise<FinalRoute> {
  const half = await signed(members);
  const signature = await relay.sign(routeRelayInput(network, half));
  return { ...half, relay_signature: encodeBase64url(signature) };
}

describe('01 §17.1, 03 §3.4: AccountRoute', () => {
  test('a draft and the final route made of it verify', () => {
    expect(checkDraft(draft)).toBeUndefined();
    expect(verify(route)).toBeUndefined();
    expect(without(route, 'relay_signature')).toEqual(draft);
  });

  test('the account signs without both signatures, the relay signs the account signature too', () => {
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    const accountInput = text(routeAccountInput(network, route));
    expect(accountInput).not.toContain('signature');
    const relayInput = text(routeRelayInput(network, route));
    expect(relayInput).toContain(`"account_signature":"${route.account_signature}"`);
    expect(relayInput).not.toContain('relay_signature');
    expect(routeSignatures(network, route, relay.publicKey)).toHaveLength(2);
  });

  test('relay_signature is absent in a draft and present in a final route', () => {
    expect(checkDraft(route)).toBe('bad_request');
    expect(check(draft)).toBe('bad_request');
    expect(checkDraft({ ...draft, relay_signature: '' })).toBe('bad_request');
    expect(checkDraft({ ...draft, relay_signature: null })).toBe('bad_request');
  });

  test.each([
    '$type',
    'account',
    'account_public_key',
    'revision',
    'relay_id',
    'updated_at',
    'expires_at',
    'account_signature',
  ])('a route without %s is refused', (name) => {
    expect(checkDraft(without(draft, name))).toBe('bad_request');
    expect(check(without(route, name))).toBe('bad_request');
  });

  test.each([
    ['$type', 'svc.route'],
    ['revision', -1],
    ['revision', 2 ** 53],
    ['relay_id', relayId.toUpperCase()],
    ['relay_id', relayId.slice(0, -1)],
    ['relay_id', `${relayId}\n`],
    ['updated_at', '1730000000'],
    ['expires_at', 1.5],
    ['account_signature', 'x'],
    ['$context', 'x'],
    ['zz', null],
  ])('a wrong %s is refused: %j', (name, value) => {
    expect(checkDraft({ ...draft, [name]: value })).toBe('bad_request');
    expect(check({ ...route, [name]: value })).toBe('bad_request');
  });

  test('the period is above 0 and at most 3,650 days', async () => {
    for (const [seconds, code] of [
      [-1, 'bad_request'],
      [0, 'bad_request'],
      [1, undefined],
      [315_360_000, undefined],
      [315_360_001, 'bad_request'],
    ] as const) {
      expect(verify(await cosigned({ expires_at: facts.updated_at + seconds }))).toBe(code);
    }
  });

  test('the final document has at most 4,096 bytes, even if the draft has fewer', async () => {
    const base = await cosigned({ zz: '' });
    const padding = (bytes: number) => padded(base, bytes).zz;
    expect(verify(await cosigned({ zz: padding(4_095) }))).toBeUndefined();
    expect(verify(await cosigned({ zz: padding(4_096) }))).toBeUndefined();
    expect(verify(await cosigned({ zz: padding(4_097) }))).toBe('request_too_large');
    const large = await signed({ zz: padding(4_097) });
    expect(checkDraft(large)).toBeUndefined();
    await expect(cosignRoute(network, relay, large)).rejects.toMatchObject({
      code: 'request_too_large',
    });
  });

  test('a key that does not derive the account is bad_request', async () => {
    expect(checkDraft(await signed({ account_public_key: otherAccount.publicKey }))).toBe(
      'bad_request',
    );
    expect(check(await cosigned({ account: otherAccount.account }))).toBe('bad_request');
  });

  test('the relay key must be that of the relay the route names', async () => {
    const foreign = { relayPublicKey: otherAccount.publicKey };
    expect(codeOf(() => verifyRoute(network, route, foreign))).toBe('bad_request');
    await expect(cosignRoute(network, otherAccount, draft)).rejects.toMatchObject({
      code: 'bad_request',
    });
  });

  test('either signature wrong fails, and so does another registry', () => {
    for (const name of ['account_signature', 'relay_signature'] as const) {
      expect(verify({ ...route, [name]: tampered(route[name]) })).toBe('invalid_signature');
    }
    expect(codeOf(() => verifyRoute(otherRegistry, route, relayKey))).toBe('invalid_signature');
  });

  test('unknown members are signed by both', async () => {
    expect(verify(await cosigned({ zz: [1] }))).toBeUndefined();
    expect(verify({ ...route, zz: [1] })).toBe('invalid_signature');
  });

  test('content is compared without signatures, with everything else and the network', async () => {
    const content = routeContent(network, route);
    expect(routeContent(network, draft)).toBe(content);
    expect(routeContent(network, { ...route, account_signature: 'x', relay_signature: 'y' })).toBe(
      content,
    );
    expect(routeContent(network, { ...route, expires_at: 1 })).not.toBe(content);
    expect(routeContent(network, await cosigned({ zz: 1 }))).not.toBe(content);
    expect(routeContent(otherRegistry, route)).not.toBe(content);
    expect(content).toContain(`"$context":"${network.context}"`);
  });

  test('signing twice gives the same draft: account signatures follow RFC 6979', async () => {
    const again = await signRouteDraft(network, account, facts);
    expect(canonicalJson(again)).toBe(canonicalJson(draft));
  });
});
