/** Steps that are about invitations, applications and recovery requests. */
import { expect } from 'vitest';
import type { TestGroup } from '../../fixtures/group.ts';
import { type Act, pick, type Stage, type StepOf } from './stage.ts';

export function invite(stage: Stage, step: StepOf<'invite'>): Act | undefined {
  const by = stage.speaker(step);
  const { invitee, maxUses, again } = step;
  const old = again === undefined ? undefined : pick(stage.invites, again);
  const facts =
    invitee !== undefined
      ? { invitee: stage.person(invitee).account }
      : maxUses !== undefined && { max_uses: maxUses };
  const expires_at = stage.relay.clock.now() + step.life;
  const invite =
    old?.inviter === by.account && stage.inviteSigners.get(old) === by.device
      ? old
      : stage.group.invitation({ expires_at, ...facts }, { by: by.person, device: by.name });
  stage.inviteSigners.set(invite, by.device);
  return {
    by,
    method: 'group.invite.create',
    params: invite,
    model: () => {
      const { created_at: createdAt, expires_at: expiresAt } = invite;
      stage.model.createInvite(by, invite.invite_id, {
        createdAt,
        expiresAt,
        invitee: invite.invitee,
        maxUses: invite.max_uses,
      });
      if (!stage.invites.includes(invite)) stage.invites.push(invite);
      return {};
    },
  };
}

export function resolveInvite(stage: Stage, step: StepOf<'resolve-invite'>): Act | undefined {
  const invite = pick(stage.invites, step.which);
  if (invite === undefined) return undefined;
  const by = stage.speaker(step);
  return {
    by,
    method: 'group.invite.resolve',
    params: { group_id: stage.groupId, invite_id: invite.invite_id },
    model: () => {
      const { uses } = stage.model.resolveInvite(by, invite.invite_id);
      return { check: (answer) => expect(answer).toMatchObject({ invite, uses }) };
    },
  };
}

export function revoke(stage: Stage, step: StepOf<'revoke'>): Act | undefined {
  const invite = pick(stage.invites, step.which);
  if (invite === undefined) return undefined;
  const by = stage.speaker(step);
  return {
    by,
    method: 'group.invite.revoke',
    params: { group_id: stage.groupId, invite_id: invite.invite_id },
    model: () => ({ hints: stage.model.revokeInvite(by, invite.invite_id) }),
  };
}

export function apply(stage: Stage, step: StepOf<'apply'>): Act | undefined {
  const all = stage.invites.toReversed();
  const usable = all.filter(({ invite_id: id }) => stage.model.isUsable(id));
  const invite = pick(step.again ? all : usable, step.which);
  if (invite === undefined) return undefined;
  const by = stage.speaker(step);
  const present = stage.model.applications.get(by.account);
  const isAgain = step.again && present?.device === by.device;
  const object = isAgain
    ? (present.object as ReturnType<TestGroup['application']>)
    : stage.group.application(by.person, invite, { device: by.name });
  const { invite_id, member_encryption_public_key: key } = object;
  return {
    by,
    method: 'group.application.submit',
    params: object,
    model: () => ({ hints: stage.model.apply(by, { invite: invite_id, key, object }) }),
  };
}

export function rejectApplications(
  stage: Stage,
  step: StepOf<'reject-applications'>,
): Act | undefined {
  const by = stage.speaker(step);
  const accounts = stage.chosen(step, stage.model.applications);
  if (accounts.length === 0) return undefined;
  return {
    by,
    method: 'group.application.reject',
    params: { group_id: stage.groupId, accounts },
    model: () => ({ hints: stage.model.rejectApplications(by, accounts) }),
  };
}

export function askRecovery(stage: Stage, step: StepOf<'ask-recovery'>): Act | undefined {
  const by = stage.speaker(step);
  const present = stage.model.recoveries.get(by.account);
  const isAgain = step.again && present?.device === by.device;
  const object = isAgain
    ? (present.object as ReturnType<TestGroup['recoveryRequest']>)
    : stage.group.recoveryRequest(by.person, { device: by.name });
  const { member_encryption_public_key: key } = object;
  return {
    by,
    method: 'group.member.recovery.submit',
    params: object,
    model: () => {
      const hints = stage.model.submitRecovery(by, { key, object });
      const { acceptedAt, expiresAt } = stage.model.recoveries.get(by.account) ?? {};
      const times = { accepted_at: acceptedAt, expires_at: expiresAt };
      return { hints, check: (answer) => expect(answer).toEqual(times) };
    },
  };
}

export function rejectRecoveries(stage: Stage, step: StepOf<'reject-recoveries'>): Act | undefined {
  const by = stage.speaker(step);
  const accounts = stage.chosen(step, stage.model.recoveries);
  if (accounts.length === 0) return undefined;
  return {
    by,
    method: 'group.member.recovery.reject',
    params: { group_id: stage.groupId, accounts },
    model: () => ({ hints: stage.model.rejectRecoveries(by, accounts) }),
  };
}
