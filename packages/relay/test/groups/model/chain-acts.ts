/** Steps that are events of the chain, and what prepares them. */

import { clientSecretCommitment, createGroupSecret, managementHash } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect } from 'vitest';
import type { TestGroup } from '../../fixtures/group.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import { network } from '../../support/in-process-relay.ts';
import type { Step } from './commands.ts';
import type { Caller, Hints, Link } from './ground.ts';
import type { Reference } from './reference.ts';
import { type Act, otherDigest, type Stage, type StepOf } from './stage.ts';

type ChainStep = Extract<Step, { isStale: boolean }>;

/** A chain body on the current head or on an earlier one, and its call. */
function chain(
  stage: Stage,
  step: ChainStep,
  {
    method,
    kind,
    facts,
    paramsOf = (body) => body,
    model,
  }: {
    readonly method: string;
    readonly kind: Parameters<TestGroup['link']>[0];
    readonly facts: object;
    readonly paramsOf?: (body: object) => object;
    readonly model: (link: Link) => Hints;
  },
): Act {
  const by = stage.speaker(step);
  const prev = step.isStale ? (stage.heads.at(-2) ?? otherDigest) : stage.model.head;
  const body = stage.group.link(kind, { prev_hash: prev, ...facts } as never, {
    by: by.person,
    device: by.name,
  });
  const next = managementHash(network, body as never);
  return {
    by,
    method,
    params: paramsOf(body),
    model: () => {
      const hints = model({ prev, next });
      stage.heads.push(next);
      return { hints };
    },
  };
}

function approval(
  stage: Stage,
  step: StepOf<'approve' | 'recover'>,
  {
    accounts,
    method,
    kind,
    keyOf,
    model,
  }: {
    readonly accounts: readonly string[];
    readonly method: string;
    readonly kind: 'group.application.approval' | 'group.member.recovery.approval';
    readonly keyOf: (account: string) => string | undefined;
    readonly model: (by: Caller, link: Parameters<Reference['approve']>[1]) => Hints;
  },
): Act | undefined {
  if (accounts.length === 0) return undefined;
  // Another secret than the one in force, or another key than the one asked for.
  const isOldSecret = step.isWrong && stage.model.head < otherDigest;
  const commitment = isOldSecret ? otherDigest : stage.model.commitment;
  const keys = new Map(
    accounts.map((account, index) => {
      const isOther = step.isWrong && !isOldSecret && index === 0;
      return [account, (isOther ? undefined : keyOf(account)) ?? newMemberKey().publicKey];
    }),
  );
  const members = [...keys].map(([account, key]) => {
    return { account, member_encryption_public_key: key };
  });
  const boxes = [...keys].map(([account, key]) => {
    return [account, stage.box(account, key, stage.model.commitment)] as const;
  });
  return chain(stage, step, {
    method,
    kind,
    facts: { members },
    paramsOf: (body) => ({
      approval: body,
      client_secret_commitment: commitment,
      client_secret_boxes: Object.fromEntries(boxes),
    }),
    model: (link) => model(stage.speaker(step), { ...link, commitment, keys }),
  });
}

export function update(stage: Stage, step: StepOf<'update'>): Act | undefined {
  const { name, capacity, policy } = step;
  const facts = {
    ...(name !== undefined && { name }),
    ...(capacity !== undefined && { member_capacity: capacity }),
    ...(policy !== undefined && { invite_policy: policy }),
  };
  if (Object.keys(facts).length === 0) return undefined;
  return chain(stage, step, {
    method: 'group.update',
    kind: 'group.update',
    facts,
    model: (link) => {
      const changes = { ...link, name, capacity, policy };
      return stage.model.update(stage.speaker(step), changes);
    },
  });
}

export function role(stage: Stage, step: StepOf<'role'>): Act | undefined {
  const { account } = stage.memberOrAny(step.target);
  const { role } = step;
  return chain(stage, step, {
    method: 'group.role.update',
    kind: 'group.role.update',
    facts: { account, role },
    model: (link) => stage.model.setRole(stage.speaker(step), { ...link, account, role }),
  });
}

export function transfer(stage: Stage, step: StepOf<'transfer'>): Act | undefined {
  const { account: to } = stage.memberOrAny(step.target);
  return chain(stage, step, {
    method: 'group.owner.transfer',
    kind: 'group.owner.transfer',
    facts: { new_owner_account: to },
    model: (link) => stage.model.transfer(stage.speaker(step), { ...link, to }),
  });
}

export function close(stage: Stage, step: StepOf<'close'>): Act | undefined {
  return chain(stage, step, {
    method: 'group.close',
    kind: 'group.close',
    facts: {},
    model: (link) => stage.model.close(stage.speaker(step), link),
  });
}

export function leave(stage: Stage, step: StepOf<'leave'>): Act | undefined {
  const by = stage.speaker(step);
  return chain(stage, step, {
    method: 'group.member.leave',
    kind: 'group.member.leave',
    facts: { account: by.account },
    model: (link) => stage.model.leave(by, link),
  });
}

export function accounts(stage: Stage, step: StepOf<'remove' | 'ban' | 'unban'>): Act | undefined {
  const by = stage.speaker(step);
  const { bans, members } = stage.model;
  const there = [...members].filter(([, { role }]) => role === 'member').slice(0, 1);
  const banned = new Map([...bans].map((account) => [account, account]));
  const accounts = stage.chosen(step, step.kind === 'unban' ? banned : new Map(there));
  const kinds = { remove: 'removal', ban: 'ban', unban: 'unban' } as const;
  if (accounts.length === 0) return undefined;
  return chain(stage, step, {
    method: `group.member.${step.kind}`,
    kind: `group.member.${kinds[step.kind]}`,
    facts: { accounts },
    model: (link) => stage.model[step.kind](by, { ...link, accounts }),
  });
}

export function approve(stage: Stage, step: StepOf<'approve'>): Act | undefined {
  const { applications } = stage.model;
  const pending = [...applications].filter(([of]) => step.isWrong || stage.model.isPending(of));
  const accounts = stage.chosen(step, new Map(pending));
  const keyOf = (account: string) => stage.model.applications.get(account)?.key;
  return approval(stage, step, {
    accounts,
    method: 'group.application.approve',
    kind: 'group.application.approval',
    keyOf,
    model: (by, link) => stage.model.approve(by, link),
  });
}

export function recover(stage: Stage, step: StepOf<'recover'>): Act | undefined {
  const { recoveries } = stage.model;
  const pending = [...recoveries].filter(([of]) => step.isWrong || stage.model.isAsking(of));
  const accounts = stage.chosen(step, new Map(pending));
  const keyOf = (account: string) => stage.model.recoveries.get(account)?.key;
  return approval(stage, step, {
    accounts,
    method: 'group.member.recovery.approve',
    kind: 'group.member.recovery.approval',
    keyOf,
    model: (by, link) => stage.model.recover(by, link),
  });
}

export function prepare(stage: Stage, step: StepOf<'prepare'>): Act | undefined {
  const by = stage.speaker(step);
  const isUsed = stage.rotation?.commitment === stage.model.commitment;
  if (step.isFresh || (isUsed && !step.isWrong) || stage.rotation === undefined) {
    const secret = createGroupSecret(nodeRandom);
    const commitment = clientSecretCommitment(network, stage.groupId, secret);
    stage.secrets.set(commitment, secret);
    stage.rotation = { commitment, ownerKey: step.newKey ? newMemberKey() : undefined };
  }
  const { commitment, ownerKey } = stage.rotation;
  const { members, owner } = stage.model;
  const base = step.isWrong ? otherDigest : stage.model.commitment;
  const accounts = stage.chosen(step, members);
  const keys = new Map(
    accounts.map((account) => {
      const own = account === owner ? ownerKey?.publicKey : undefined;
      return [account, own ?? members.get(account)?.key ?? newMemberKey().publicKey];
    }),
  );
  const boxes = [...keys].map(([of, key]) => [of, stage.box(of, key, commitment)] as const);
  return {
    by,
    method: 'group.secret.rotation.prepare',
    params: {
      group_id: stage.groupId,
      base_commitment: base,
      client_secret_commitment: commitment,
      client_secret_boxes: Object.fromEntries(boxes),
    },
    model: () => {
      const prepared = stage.model.prepare(by, { base, commitment, keys });
      return { check: (answer) => expect(answer).toEqual(prepared) };
    },
  };
}

export function commit(stage: Stage, step: StepOf<'commit'>): Act | undefined {
  if (stage.model.staging === undefined && !step.isStale) return undefined;
  const commitment = stage.rotation?.commitment ?? otherDigest;
  const ownerKey = stage.rotation?.ownerKey?.publicKey;
  return chain(stage, step, {
    method: 'group.secret.rotation.commit',
    kind: 'group.secret.rotation',
    facts: {
      client_secret_commitment: commitment,
      ...(ownerKey !== undefined && { owner_encryption_public_key: ownerKey }),
    },
    model: (link) => {
      const facts = { ...link, commitment, ...(ownerKey !== undefined && { ownerKey }) };
      return stage.model.commit(stage.speaker(step), facts);
    },
  });
}
