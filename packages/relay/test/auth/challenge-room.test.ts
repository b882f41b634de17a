import { accountSigner } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import { secretHash } from '../../src/sessions/secrets.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';
import { network } from '../support/modules.ts';

const relay = inProcessRelay({ challenges: 6, challengesPerAddress: 4, challengesOfAccount: 2 });

const accountOf = (byte: number) => accountSigner(network, new Uint8Array(32).fill(byte)).account;
const issue = async (address: string, byte = 1): Promise<string> => {
  const params = { account: accountOf(byte) };
  const challenge = await relay.call('auth.challenge', params, { address });
  return (challenge as { readonly nonce: string }).nonce;
};
/** Which of the nonces can still be used. */
const waiting = async (nonces: readonly string[]) => {
  const stored = (await relay.rows('auth_challenges')).map((row) => row.nonce_hash);
  return nonces.map((nonce) => stored.includes(secretHash(nonce)));
};
const issueEach = async (address: string, bytes: readonly number[]) => {
  const nonces = [];
  for (const byte of bytes) nonces.push(await issue(address, byte));
  return nonces;
};

describe('02 §9.2: challenges that wait for their proof', () => {
  test('above challengesOfAccount the oldest of the account from that address ends, and no other', async () => {
    const mine = await issue('192.0.2.1');
    const others = await issueEach('198.51.100.1', [1, 2, 1]);
    expect(await waiting([mine, ...others])).toEqual([true, true, true, true]);
    const one = await issue('198.51.100.1', 1);
    expect(await waiting([mine, ...others, one])).toEqual([true, false, true, true, true]);
  });

  test('above challengesPerAddress the oldest of the address ends, and no other', async () => {
    const mine = await issue('2001:db8:1:1::/64');
    const others = await issueEach('2001:db8:1:2::/64', [1, 2, 3, 4]);
    expect(await waiting([mine, ...others])).toEqual([true, true, true, true, true]);
    const one = await issue('2001:db8:1:2::/64', 5);
    expect(await waiting([mine, ...others, one])).toEqual([true, false, true, true, true, true]);
  });

  test('above challenges the network with most makes room; else one more is refused', async () => {
    const mine = await issue('192.0.2.1');
    const many = [
      ...(await issueEach('2001:db8:1:1::/64', [1, 2, 3])),
      ...(await issueEach('2001:db8:1:2::/64', [1, 2])),
    ];
    const alone = await issue('198.51.100.1');
    expect(await waiting([mine, ...many, alone])).toEqual([
      ...[true, false, true, true, true, true, true],
    ]);
    // A network that has most makes room for itself.
    await issue('2001:db8:1:1::/64', 4);
    expect(await waiting([mine, ...many])).toEqual([true, false, false, true, true, true]);
    for (const address of ['203.0.113.1', '203.0.114.1', '203.0.115.1']) await issue(address);
    const before = await relay.dump();
    relay.clock.advance(100);
    await expect(issue('203.0.116.1')).rejects.toMatchObject({
      ...{ code: 'rate_limited', data: { retry_after: 200 } },
    });
    expect(await relay.dump()).toEqual(before);
    expect(await waiting([mine])).toEqual([true]);
    relay.clock.advance(200);
    await issue('203.0.116.1');
  });

  test('those that were used, or could not be stored, need no room', async () => {
    const verify = async (nonce: string) => await relay.codeOf('auth.device.verify', { nonce });
    const kept = await issue('192.0.2.1');
    for (let login = 0; login < 10; login += 1) {
      expect(await verify(await issue('192.0.2.1'))).toBe('bad_request');
    }
    relay.faults.beforeCommit = () => {
      throw new Error('the disk is full');
    };
    for (let login = 0; login < 10; login += 1) {
      await expect(issue(`198.51.${login}.1`)).rejects.toThrow();
    }
    delete relay.faults.beforeCommit;
    await issue('203.0.113.1');
    expect(await waiting([kept])).toEqual([true]);
  });
});
