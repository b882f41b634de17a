/** The kit against a relay that takes new accounts by invite. */
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertInvite, newInviteCode } from '../../relay/src/registration/index.ts';
import { checks, runCheck, selectChecks, type Target } from '../src/index.ts';
import { startRelay, unlimited } from './relays.ts';

let tested: Awaited<ReturnType<typeof startRelay>>;
beforeAll(async () => {
  tested = await startRelay({ registration: 'invite', limits: unlimited });
});
afterAll(() => tested[Symbol.asyncDispose]());

const [check] = selectChecks(checks, ['profile.publish/']);

async function outcome(target: Target): Promise<string> {
  if (check === undefined) throw new Error('no check is left');
  return (await runCheck(target, check, 'https')).outcome;
}

test('02 §9.4: with the code of an invite a check passes, without one it fails', async () => {
  const { id, code, digest } = newInviteCode(nodeRandom);
  const { clock, storage } = tested.relay.context;
  const times = { createdAt: clock.now(), expiresAt: clock.now() + 86_400 };
  const stored = { id, digest, uses: 1_000, used: 0, note: '', ...times };
  await storage.write('registration', (tx) => insertInvite(tx, stored, 1));
  expect(await outcome({ ...tested.target, invite: code })).toBe('passed');
  expect(await outcome(tested.target)).toBe('failed');
});
