import { beforeEach, describe, expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const relay = servedRelay();
let stranger: Person;

beforeEach(async () => {
  stranger = new Person(relay, 'stranger');
});

const verify = async (proof: unknown) =>
  codeOf(await relay.http().call('auth.account.verify', proof));
const proofOf = async (wrong = {}) => {
  const { nonce } = await relay.challenge(stranger.account);
  return relay.accountProof(stranger, nonce, wrong);
};

describe('02 §9.4: auth.account.verify', () => {
  test('the holder of the account key gets a session, without any state at this relay', async () => {
    const answer = await relay.http().call('auth.account.verify', await proofOf());
    expect(JSON.parse(answer.text)).toMatchObject({
      mode: 'account',
      expires_at: relay.clock.now() + 3_600,
    });
  });

  test('a proof for another origin is invalid_signature', async () => {
    expect(await verify(await proofOf({ origin: 'https://elsewhere.example' }))).toBe(
      'invalid_signature',
    );
  });

  test('§18: a key that does not derive the account is bad_request and the nonce gone', async () => {
    const other = new Person(relay, 'other');
    const proof = await proofOf();
    const swapped = { ...proof, account_public_key: other.signer.publicKey };
    expect(await verify(swapped)).toBe('bad_request');
    expect(await verify(proof)).toBe('unauthorized');
  });

  test.each(['account_public_key', 'account_signature'])(
    'without %s it is bad_request, the nonce is gone',
    async (name) => {
      const { [name]: _, ...proof } = await proofOf();
      expect(await verify(proof)).toBe('bad_request');
      expect(await verify(proof)).toBe('unauthorized');
    },
  );

  test('a key that is no point of the curve does not verify', async () => {
    const proof = await proofOf();
    expect(await verify({ ...proof, account_public_key: `Av${'_'.repeat(42)}` })).toBe(
      'bad_request',
    );
  });

  test('one challenge can be used with either method, once', async () => {
    const ann = await relay.register('ann');
    const { nonce } = await relay.challenge(ann.account);
    expect(await verify(await relay.accountProof(ann, nonce))).toBe('ok');
    const proof = relay.deviceProof(ann.device(), nonce);
    expect(codeOf(await relay.http().call('auth.device.verify', proof))).toBe('unauthorized');
  });
});
