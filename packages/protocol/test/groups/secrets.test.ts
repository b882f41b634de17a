import { describe, expect, test } from 'vitest';
import { GroupNonce } from '../../src/groups/ids.ts';
import {
  checkSchema,
  clientSecretCommitment,
  createGroupInviteId,
  createGroupNonce,
  createGroupSecret,
  deriveEpochApplicationSecret,
  deriveGroupId,
  GroupId,
  GroupInviteId,
} from '../../src/index.ts';
import {
  alice,
  bob,
  clientSecret,
  commitment,
  counting,
  fill,
  groupId,
  network,
  nonce,
  relayId,
} from './fixture.ts';

describe('05 §3.2: the group ID', () => {
  const identity = { creator: alice.account, nonce, relay_id: relayId };

  test('creator, nonce and host decide it, nothing else', () => {
    expect(deriveGroupId(network, identity)).toBe(groupId);
    expect(deriveGroupId(network, { ...identity, name: 'x' } as typeof identity)).toBe(groupId);
    const others = [
      { ...identity, creator: bob.account },
      { ...identity, nonce: createGroupNonce(counting()) },
      { ...identity, relay_id: `0x${'0'.repeat(40)}` },
    ];
    const ids = others.map((other) => deriveGroupId(network, other));
    expect(new Set([groupId, ...ids]).size).toBe(4);
  });

  test('IDs and nonces have the form of their field', () => {
    checkSchema(GroupId, groupId);
    checkSchema(GroupNonce, createGroupNonce(counting()));
    checkSchema(GroupInviteId, createGroupInviteId(counting()));
    expect(() => checkSchema(GroupId, groupId.replace('grp_', 'GRP_'))).toThrow();
    expect(() => checkSchema(GroupId, `${groupId}\n`)).toThrow();
    // 22 characters whose last carries bits that no 16 bytes have.
    expect(() => checkSchema(GroupId, `grp_${'A'.repeat(21)}B`)).toThrow();
  });
});

test('05 §3.4: the commitment binds secret, group and network', () => {
  expect(clientSecretCommitment(network, groupId, clientSecret)).toBe(commitment);
  expect(clientSecretCommitment(network, groupId, fill(1, 32))).not.toBe(commitment);
  const otherGroup = `grp_${'A'.repeat(22)}`;
  expect(clientSecretCommitment(network, otherGroup, clientSecret)).not.toBe(commitment);
  expect(createGroupSecret(counting())).toHaveLength(32);
});

test('05 §3.8: each input of the application secret changes it, their order too', () => {
  const base = {
    group_id: groupId,
    epoch: 3,
    client_secret_commitment: commitment,
    clientSecret,
    relaySecret: fill(5, 32),
  };
  const variants = [
    base,
    { ...base, group_id: `grp_${'A'.repeat(22)}` },
    { ...base, epoch: 4 },
    { ...base, client_secret_commitment: `sha256:${'A'.repeat(43)}` },
    { ...base, clientSecret: fill(1, 32) },
    { ...base, relaySecret: fill(6, 32) },
    { ...base, clientSecret: base.relaySecret, relaySecret: base.clientSecret },
  ];
  const secrets = variants.map((each) => deriveEpochApplicationSecret(network, each).join());
  expect(new Set(secrets).size).toBe(variants.length);
  expect(deriveEpochApplicationSecret(network, base)).toHaveLength(32);
});
