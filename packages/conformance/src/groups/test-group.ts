/** A group under test: calls its methods and follows the head, owner, secret and keys. */
import { type GroupInvite, managementHash } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { type ChainBodyMembers, GroupObjects, idsOf, newSecret } from './group-objects.ts';
import type { MemberKey } from './member-keys.ts';

/**
 * Calls the methods of one group; by default the owner calls. The methods of {@link GroupObjects}
 * make an object without sending it.
 *
 * @example
 * const group = await TestGroup.create(context, ann);
 * await group.admit(ben, cem);
 * const body = group.chainBody('group.member.leave', { account: ben.account.id }, ben);
 * await group.write('group.member.leave', body, { by: ben });
 */
export class TestGroup extends GroupObjects {
  /** Makes a group without creating it; `createParams` are the parameters of `group.create`. */
  static draft(context: TestContext, owner: TestAccount, overrides: JsonObject = {}): TestGroup {
    return new TestGroup(context, owner, overrides);
  }

  /** Creates a group with its owner as the only member. */
  static async create(
    context: TestContext,
    owner: TestAccount,
    overrides: JsonObject = {},
  ): Promise<TestGroup> {
    const group = TestGroup.draft(context, owner, overrides);
    await context.expectOk(owner.caller, 'group.create', group.createParams);
    context.atEnd(() => group.close());
    return group;
  }

  /** Calls a method with a chain event and moves the head. */
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

  async update(overrides: ChainBodyMembers, by = this.owner): Promise<void> {
    await this.write('group.update', this.chainBody('group.update', overrides, by), { by });
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

  async remove(accounts: readonly TestAccount[], by = this.owner): Promise<void> {
    const body = this.chainBody('group.member.removal', { accounts: idsOf(accounts) }, by);
    await this.write('group.member.remove', body, { by });
  }

  async ban(accounts: readonly TestAccount[], by = this.owner): Promise<void> {
    const body = this.chainBody('group.member.ban', { accounts: idsOf(accounts) }, by);
    await this.write('group.member.ban', body, { by });
  }

  async unban(accounts: readonly TestAccount[], by = this.owner): Promise<void> {
    const body = this.chainBody('group.member.unban', { accounts: idsOf(accounts) }, by);
    await this.write('group.member.unban', body, { by });
  }

  async invite(overrides: JsonObject = {}, by: TestAccount = this.owner): Promise<GroupInvite> {
    const invite = this.invitation(overrides, by);
    await this.context.expectOk(by.caller, 'group.invite.create', invite);
    return invite;
  }

  async apply(by: TestAccount, invite: Pick<GroupInvite, 'invite_id'>): Promise<JsonObject> {
    const application = this.application(by, invite);
    await this.context.expectOk(by.caller, 'group.application.submit', application);
    return application;
  }

  /** Approves the applications of accounts. */
  async approve(accounts: readonly TestAccount[], by = this.owner): Promise<void> {
    const params = this.approvalParams(accounts, { by });
    await this.write('group.application.approve', params.approval, { by, params });
    for (const id of idsOf(accounts)) this.keys.activate(id);
  }

  /** Invites accounts, submits their applications and approves all in one event. */
  async admit(...accounts: readonly TestAccount[]): Promise<void> {
    const invite = await this.invite();
    await Promise.all(accounts.map((account) => this.apply(account, invite)));
    await this.approve(accounts);
  }

  async requestRecovery(by: TestAccount): Promise<JsonObject> {
    const request = this.recoveryRequest(by);
    await this.context.expectOk(by.caller, 'group.member.recovery.submit', request);
    return request;
  }

  /** Approves the recovery requests of members. */
  async recover(accounts: readonly TestAccount[], by = this.owner): Promise<void> {
    const params = this.approvalParams(accounts, { by, kind: 'group.member.recovery.approval' });
    await this.write('group.member.recovery.approve', params.approval, { by, params });
    for (const id of idsOf(accounts)) this.keys.activate(id);
  }

  /** Prepares a rotation; returns the number of boxes and the end of the preparation. */
  async prepare(params: JsonObject): Promise<{ prepared: number; expires_at: number }> {
    const method = 'group.secret.rotation.prepare';
    const answer: unknown = await this.context.expectOk(this.owner.caller, method, params);
    return answer as { prepared: number; expires_at: number };
  }

  /** Rotates to a new client secret, with boxes for the accounts. */
  async rotate(accounts: readonly TestAccount[], ownerKey?: MemberKey): Promise<void> {
    const secret = newSecret();
    await this.prepare(this.prepareParams(secret, accounts, ownerKey && { ownerKey }));
    await this.commit(secret, ownerKey);
  }

  /** Commits a prepared rotation. */
  async commit(secret: Uint8Array, ownerKey?: MemberKey): Promise<void> {
    await this.write(
      'group.secret.rotation.commit',
      this.rotationBody(secret, ownerKey && { ownerKey }),
    );
    this.secret = secret;
    if (ownerKey) this.keys.activate(this.owner.account.id, ownerKey);
  }

  /** Sends a message in an epoch; returns its sequence. */
  async send(by: TestAccount, epoch: number): Promise<number> {
    const answer = await this.context.expectOk(
      by.caller,
      'group.message.send',
      this.message(by, epoch),
    );
    return (answer as { readonly sequence: number }).sequence;
  }
}

/** Asserts that a rotation is refused with `state_conflict`: its secret is not prepared. */
export async function assertCommitRefused(group: TestGroup, secret: Uint8Array): Promise<void> {
  const call = { method: 'group.secret.rotation.commit', params: group.rotationBody(secret) };
  await group.context.expectError(group.owner.caller, call, 'state_conflict');
}
