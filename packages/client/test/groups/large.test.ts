/** Groups with more members than one call can carry, and events of the largest size. */
import { join } from 'node:path';
import {
  accountSigner,
  deriveAccountId,
  deviceSigner,
  encodeBase64url,
  type GroupApplication,
  type GroupInvite,
  limits,
  signAsDevice,
  signDeviceCertificate,
  signingDevice,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { digest } from '../../../relay/src/digest.ts';
import { keepCertificate } from '../../../relay/src/groups/chain/event-store.ts';
import { writeApplication } from '../../../relay/src/groups/requests/application-store.ts';
import { openSqliteAlongside } from '../../../relay/src/storage/sqlite/storage.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import { club, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true }, limits: { groupBans: 100_000 } });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

test('05 §12.2: an event of the largest size is written and read over HTTPS', async () => {
  const [ann, bob] = [await relay.world.person(), await relay.world.person()];
  const id = await club(ann, [bob]);
  const anybody = () => deriveAccountId(network, encodeBase64url(nodeRandom(33)));
  const frame = canonicalJson({
    $type: network.type('group.member.ban'),
    accounts: [],
    device_signature: 'A'.repeat(86),
    group_id: id,
    prev_hash: `sha256:${'A'.repeat(43)}`,
  });
  // With quotes and separating commas. The request around it is larger than the remaining bytes.
  const most = Math.floor((limits.groupWriteBytes + 1 - frame.length) / (anybody().length + 3));
  const accounts = Array.from({ length: most }, anybody);
  const tooMany = ann.groups.ban(id, [...accounts, ...anybody()]);
  await expect(tooMany).rejects.toMatchObject({ code: 'invalid_input' });
  relay.asked.clear();
  await ann.groups.ban(id, accounts);
  expect(relay.asked.get('group.member.ban')).toBe(1);
  await ann.groups.send(id, { text: 'after it' });
  relay.asked.clear();
  await bob.sync();
  expect((await bob.groups.get(id)).state?.bans.size).toBe(most);
  expect(await groupTexts(bob, id)).toEqual(['after it']);
  // Requested once over WebSocket, then over HTTPS; the rest of the timeline over WebSocket.
  expect(relay.asked.get('group.sync')).toBeLessThanOrEqual(4);
});

/** A correctly signed application of a new account, with its certificate. */
async function applicationOf(invite: GroupInvite) {
  const signer = accountSigner(network, nodeRandom(32));
  const encryptionKey = nodeRandom(32);
  const device = deviceSigner(network, { signingSeed: nodeRandom(32), encryptionKey });
  const certificate = await signDeviceCertificate(network, {
    account: signer,
    device,
    notBefore: relay.world.clock.now() - 60,
    expiresAt: relay.world.clock.now() + 86_400,
  });
  const { deviceId } = signingDevice(network, signer.account, device);
  const { x25519 } = network.primitives;
  const unsigned = {
    $type: network.type('group.application'),
    account: signer.account,
    group_id: invite.group_id,
    invite_id: invite.invite_id,
    member_encryption_public_key: encodeBase64url(x25519.publicKey(nodeRandom(32))),
  };
  const application: GroupApplication = signAsDevice(network, unsigned, device);
  return { application, certificate: canonicalJson(certificate), deviceId };
}

/** Stores applications of accounts that never call, as the relay would store those of calls. */
async function applyAll(invite: GroupInvite, people: number): Promise<string[]> {
  const applications: Awaited<ReturnType<typeof applicationOf>>[] = [];
  for (let each = 0; each < people; each += 1) applications.push(await applicationOf(invite));
  await using storage = openSqliteAlongside(join(relay.world.folder, 'relay'));
  await storage.write(`group:${invite.group_id}`, async (tx) => {
    for (const { application, certificate, deviceId } of applications) {
      const certificateId = digest(certificate);
      const signer = { deviceId, certificateId, certificate };
      const neededUntil = invite.expires_at;
      await tx.run(...keepCertificate(invite.group_id, { signer, neededUntil }));
      const text = canonicalJson(application as unknown as JsonObject);
      const stored = {
        ...signer,
        account: application.account,
        inviteId: invite.invite_id,
        memberKey: application.member_encryption_public_key,
        acceptedAt: relay.world.clock.now(),
        text,
      };
      await writeApplication(tx, invite.group_id, stored, undefined);
    }
  });
  return applications.map(({ application }) => application.account);
}

test('05 §13.26: more members than one call can carry are admitted and get the new secret', async () => {
  const [ann, bob] = [await relay.world.person(), await relay.world.person()];
  const id = await club(ann, [bob]);
  const { invite } = await ann.groups.invite(id);
  const accounts = await applyAll(invite, 1_100);
  relay.asked.clear();
  await ann.groups.approve(id, accounts);
  expect(relay.asked.get('group.application.approve')).toBe(2);
  expect((await ann.groups.get(id)).state?.members.size).toBe(1_102);
  await ann.groups.rotate(id);
  expect(relay.asked.get('group.secret.rotation.prepare')).toBe(2);
  await ann.groups.send(id, { text: 'to all of them' });
  await Promise.all([ann.sync(), bob.sync()]);
  expect(await groupTexts(bob, id)).toEqual(['to all of them']);
  expect((await bob.groups.get(id)).state).toEqual((await ann.groups.get(id)).state);
});
