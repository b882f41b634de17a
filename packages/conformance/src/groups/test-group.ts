/** The people of a group and what they do. */
import { type GroupInvite, managementHash } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { type ChainBodyMembers, GroupObjects, idsOf, newSecret } from './group-objects.ts';
import type { MemberKey } from './member-keys.ts';

/**
 * Calls the methods of one group and keeps what follows. Who acts is the owner unless said
 * otherwise. Only {@link GroupObjects.chainBody} and its like make an object without sending it.
 *
 * @example
 * const group = await TestGroup.create(context, ann);
 * await group.admit(ben, cem);
 * const body = group.link('group.member.leave', { account: ben.account.id }, ben);
 * await group.write('group.member.leave', body, { by: ben });
 */
export class TestGroup extends GroupObjects {
  /** A group that is not created yet: `creation` are the parameters that do it. */
  static draft(context: TestContext, owner: TestAccount, facts: JsonObject = {}): TestGroup {
    return new TestGroup(context, owner, facts);
  }

  /** Creates a group; nobody but its owner is a member. */
  static async create(
    context: TestContext,
    owner: TestAccount,
    facts: JsonObject = {},
  ): Promise<TestGroup> {
    const group = TestGroup.draft(context, owner, facts);
    await context.expectOk(owner.caller, 'group.create', group.createParams);
    return group;
  }

  /** Calls a method with a chain body, and moves the head. */
  async write(
    method: string,
    body: JsonObject,
    {
      by = this.owner,
      params = body,
    }: { readonly by?: TestAccount; readonly params?: JsonObject } = {},
  ): Promise<void> {
    await this.context.expectOk(by.caller, method, params);
    this.head = managementHash(this.context.network, body);
  }

  async update(facts: ChainBodyMembers, by = this.owner): Promise<void> {
    await this.write('group.update', this.chainBody('group.update', facts, by), { by });
  }

  async setRole({ account }: TestAccount, role: 'administrator' | 'member'): Promise<void> {
    const body = this.chainBody('group.role.update', { account: account.id, role });
    await this.write('group.role.update', body);
  }

  async transfer(to: TestAccount): Promise<void> {
    const body = this.chainBody('group.owner.transfer', { new_owner_account: to.account.id });
    await this.write('group.owner.transfer', body);
    this.owner = to;
  }

  async close(): Promise<void> {
    await this.write('group.close', this.chainBody('group.close'));
  }

  async leave(by: TestAccount): Promise<void> {
    const body = this.chainBody('group.member.leave', { account: by.account.id }, by);
    await this.write('group.member.leave', body, { by });
  }

  async remove(people: readonly TestAccount[], by = this.owner): Promise<void> {
    const body = this.chainBody('group.member.removal', { accounts: idsOf(people) }, by);
    await this.write('group.member.remove', body, { by });
  }

  async ban(people: readonly TestAccount[], by = this.owner): Promise<void> {
    const body = this.chainBody('group.member.ban', { accounts: idsOf(people) }, by);
    await this.write('group.member.ban', body, { by });
  }

  async unban(people: readonly TestAccount[], by = this.owner): Promise<void> {
    const body = this.chainBody('group.member.unban', { accounts: idsOf(people) }, by);
    await this.write('group.member.unban', body, { by });
  }

  async invite(facts: JsonObject = {}, by: TestAccount = this.owner): Promise<GroupInvite> {
    const invite = this.invitation(facts, by);
    await this.context.expectOk(by.caller, 'group.invite.create', invite);
    return invite;
  }

  async apply(by: TestAccount, invite: Pick<GroupInvite, 'invite_id'>): Promise<JsonObject> {
    const application = this.application(by, invite);
    await this.context.expectOk(by.caller, 'group.application.submit', application);
    return application;
  }

  /** Admits people who applied. */
  async approve(people: readonly TestAccount[], by = this.owner): Promise<void> {
    const params = this.approvalParams(people, { by });
    await this.write('group.application.approve', params.approval, { by, params });
    for (const id of idsOf(people)) this.keys.activate(id);
  }

  /** Invites people, lets them apply and admits them in one event. */
  async admit(...people: readonly TestAccount[]): Promise<void> {
    const invite = await this.invite();
    await Promise.all(people.map((person) => this.apply(person, invite)));
    await this.approve(people);
  }

  async requestRecovery(by: TestAccount): Promise<JsonObject> {
    const request = this.recoveryRequest(by);
    await this.context.expectOk(by.caller, 'group.member.recovery.submit', request);
    return request;
  }

  /** Gives members the keys they asked for. */
  async recover(people: readonly TestAccount[], by = this.owner): Promise<void> {
    const params = this.approvalParams(people, { by, kind: 'group.member.recovery.approval' });
    await this.write('group.member.recovery.approve', params.approval, { by, params });
    for (const id of idsOf(people)) this.keys.activate(id);
  }

  /** Prepares boxes of a secret; says what the relay counts and when the preparation ends. */
  async prepare(params: JsonObject): Promise<{ prepared: number; expires_at: number }> {
    const method = 'group.secret.rotation.prepare';
    const answer: unknown = await this.context.expectOk(this.owner.caller, method, params);
    return answer as { prepared: number; expires_at: number };
  }

  /** Prepares a new client secret for all these people and puts it into force. */
  async rotate(people: readonly TestAccount[], ownerKey?: MemberKey): Promise<void> {
    const secret = newSecret();
    await this.prepare(this.prepareParams(secret, people, ownerKey && { ownerKey }));
    await this.commit(secret, ownerKey);
  }

  /** Puts a prepared client secret into force. */
  async commit(secret: Uint8Array, ownerKey?: MemberKey): Promise<void> {
    await this.write(
      'group.secret.rotation.commit',
      this.rotationBody(secret, ownerKey && { ownerKey }),
    );
    this.secret = secret;
    if (ownerKey) this.keys.activate(this.owner.account.id, ownerKey);
  }

  /** Sends a message in an epoch; says its sequence. */
  async send(by: TestAccount, epoch: number): Promise<number> {
    const answer = await this.context.expectOk(
      by.caller,
      'group.message.send',
      this.message(by, epoch),
    );
    return (answer as { readonly sequence: number }).sequence;
  }
}

/** Commits a rotation to a secret and expects `state_conflict`: the secret is not prepared. */
export async function assertCommitRefused(group: TestGroup, secret: Uint8Array): Promise<void> {
  const call = { method: 'group.secret.rotation.commit', params: group.rotationBody(secret) };
  await group.context.expectError(group.owner.caller, call, 'state_conflict');
}
