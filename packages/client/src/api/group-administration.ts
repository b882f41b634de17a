/** Owner's, administrators' and members' changes of a group; the second half of `Groups`. */
import type { GroupInvitePolicy } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../core.ts';
import { removeSettledRecovery, requestRecovery } from '../groups/keys/recover-key.ts';
import type { RotationOptions } from '../groups/keys/rotate-secret.ts';
import {
  createInvite,
  type InviteTerms,
  type IssuedInvite,
  listInvites,
  revokeInvite,
} from '../groups/membership/invitations.ts';
import {
  approveApplications,
  approveRecoveries,
  listApplications,
  listRecoveries,
  type PendingApplication,
  type PendingRecovery,
  rejectApplications,
  rejectRecoveries,
} from '../groups/membership/requests.ts';
import { writeChainEvent } from '../groups/timeline/write-chain-event.ts';
import { type Abortable, signalOf } from './options.ts';

/** Properties of a group that an update changes; an absent member stays. */
export interface GroupChanges {
  readonly name?: string;
  readonly description?: string;
  /** Limit of members. */
  readonly capacity?: number;
  readonly invitePolicy?: GroupInvitePolicy;
}

/** Invitations, applications, roles, keys and closing: what changes a group for all its members. */
export class GroupAdministration {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Creates an invitation; its `text` is a link.
   *
   * @throws ClientError `not_permitted`, `invalid_input`
   * @example
   * const { text } = await account.groups.invite(groupId, { maxUses: 10 });
   */
  async invite(
    groupId: string,
    terms: InviteTerms = {},
    options: Abortable = {},
  ): Promise<IssuedInvite> {
    return await createInvite(this.#core, { groupId, terms }, signalOf(options));
  }

  /**
   * Lists the valid invitations this account may see.
   *
   * @example
   * const [first] = await account.groups.listInvites(groupId);
   */
  async listInvites(groupId: string, options: Abortable = {}): Promise<IssuedInvite[]> {
    return await listInvites(this.#core, groupId, signalOf(options));
  }

  /**
   * Revokes an invitation, and the pending applications made with it.
   *
   * @example
   * const { invite } = await account.groups.invite(groupId);
   * await account.groups.revokeInvite(groupId, invite.invite_id);
   */
  async revokeInvite(groupId: string, inviteId: string, options: Abortable = {}): Promise<void> {
    await revokeInvite(this.#core, { groupId, inviteId }, signalOf(options));
  }

  /**
   * Lists pending applications, each verified.
   *
   * @example
   * for (const { application } of await account.groups.listApplications(groupId)) {
   *   console.log(application.account);
   * }
   */
  async listApplications(groupId: string, options: Abortable = {}): Promise<PendingApplication[]> {
    return await listApplications(this.#core, groupId, signalOf(options));
  }

  /**
   * Admits applicants, after every check of their applications and invitations.
   *
   * @throws ClientError `invalid_input`, `not_permitted`, `group_key_missing`
   * @example
   * await account.groups.approve(groupId, [bob]);
   */
  async approve(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await approveApplications(this.#core, { groupId, accounts }, signalOf(options));
  }

  /**
   * Rejects applications.
   *
   * @throws ClientError `invalid_input` for an account that did not apply
   * @example
   * await account.groups.reject(groupId, [bob]);
   */
  async reject(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await rejectApplications(this.#core, { groupId, accounts }, signalOf(options));
  }

  /**
   * Changes properties of the group.
   *
   * @throws ClientError `not_permitted`, `invalid_input`
   * @example
   * await account.groups.update(groupId, { name: 'Chess society' });
   */
  async update(groupId: string, facts: GroupChanges, options: Abortable = {}): Promise<void> {
    const { name, description, capacity, invitePolicy } = facts;
    const fields = {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(capacity !== undefined && { member_capacity: capacity }),
      ...(invitePolicy !== undefined && { invite_policy: invitePolicy }),
    };
    await this.#write(groupId, { kind: 'group.update', method: 'group.update', fields }, options);
  }

  /**
   * Makes a member an administrator or an ordinary member.
   *
   * @throws ClientError `not_permitted` for all but the owner
   * @example
   * await account.groups.setRole(groupId, { account: bob, role: 'administrator' });
   */
  async setRole(
    groupId: string,
    member: { readonly account: string; readonly role: 'administrator' | 'member' },
    options: Abortable = {},
  ): Promise<void> {
    const { account, role } = member;
    const event = { kind: 'group.role.update', method: 'group.role.update' } as const;
    await this.#write(groupId, { ...event, fields: { account, role } }, options);
  }

  /**
   * Makes another member the owner; the own account becomes an ordinary member.
   *
   * @throws ClientError `not_permitted` for all but the owner
   * @example
   * await account.groups.transfer(groupId, bob);
   */
  async transfer(groupId: string, account: string, options: Abortable = {}): Promise<void> {
    const event = { kind: 'group.owner.transfer', method: 'group.owner.transfer' } as const;
    await this.#write(groupId, { ...event, fields: { new_owner_account: account } }, options);
  }

  /**
   * Leaves the group. An owner must transfer it first.
   *
   * @throws ClientError `not_permitted` for the owner
   * @example
   * await account.groups.leave(groupId);
   */
  async leave(groupId: string, options: Abortable = {}): Promise<void> {
    const event = { kind: 'group.member.leave', method: 'group.member.leave' } as const;
    await this.#write(groupId, { ...event, fields: { account: this.#core.account } }, options);
  }

  /**
   * Removes members. They may apply again; the client secret that they know stays in use until
   * `rotate`.
   *
   * @throws ClientError `not_permitted`
   * @example
   * await account.groups.remove(groupId, [bob]);
   * await account.groups.rotate(groupId, { fresh: true });
   */
  async remove(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    const event = { kind: 'group.member.removal', method: 'group.member.remove' } as const;
    await this.#write(groupId, { ...event, fields: { accounts: distinct(accounts) } }, options);
  }

  /**
   * Bans accounts, and removes those that are members.
   *
   * @throws ClientError `not_permitted`
   * @example
   * await account.groups.ban(groupId, [bob]);
   */
  async ban(groupId: string, accounts: readonly string[], options: Abortable = {}): Promise<void> {
    const event = { kind: 'group.member.ban', method: 'group.member.ban' } as const;
    await this.#write(groupId, { ...event, fields: { accounts: distinct(accounts) } }, options);
  }

  /**
   * Lifts bans. The accounts do not become members; they may apply.
   *
   * @throws ClientError `not_permitted`
   * @example
   * await account.groups.unban(groupId, [bob]);
   */
  async unban(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    const event = { kind: 'group.member.unban', method: 'group.member.unban' } as const;
    await this.#write(groupId, { ...event, fields: { accounts: distinct(accounts) } }, options);
  }

  /**
   * Closes the group for good.
   *
   * @throws ClientError `not_permitted` for all but the owner
   * @example
   * await account.groups.close(groupId);
   */
  async close(groupId: string, options: Abortable = {}): Promise<void> {
    const event = { kind: 'group.close', method: 'group.close' } as const;
    await this.#write(groupId, { ...event, fields: {} }, options);
  }

  /**
   * Requests a new member key, if the old one is lost on all devices. The key is activated only
   * after the verified history names it and its box opens (05 §17.4).
   *
   * @returns Unix seconds until which the request can be approved
   * @example
   * const expiresAt = await account.groups.requestRecovery(groupId);
   */
  async requestRecovery(groupId: string, options: Abortable = {}): Promise<number> {
    return await requestRecovery(this.#core, groupId, signalOf(options));
  }

  /**
   * Lists the key recovery requests this account may see, each verified.
   *
   * @example
   * for (const { request } of await account.groups.listRecoveries(groupId)) {
   *   console.log(request.account);
   * }
   */
  async listRecoveries(groupId: string, options: Abortable = {}): Promise<PendingRecovery[]> {
    return await listRecoveries(this.#core, groupId, signalOf(options));
  }

  /**
   * Gives members the new keys they asked for.
   *
   * @throws ClientError `invalid_input`, `not_permitted`, `group_key_missing`
   * @example
   * await account.groups.approveRecovery(groupId, [bob]);
   */
  async approveRecovery(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await approveRecoveries(this.#core, { groupId, accounts }, signalOf(options));
  }

  /**
   * Rejects key recovery requests of other accounts, or withdraws the own one.
   *
   * @throws ClientError `invalid_input` for an account without a request
   * @example
   * await account.groups.rejectRecovery(groupId, [account.id]);
   */
  async rejectRecovery(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await rejectRecoveries(this.#core, { groupId, accounts }, signalOf(options));
    await removeSettledRecovery(this.#core, groupId, signalOf(options));
  }

  /**
   * Replaces the client secret, so that only the current members can read what follows; a former
   * member cannot, even together with the host. An interrupted call is resumed by the next one.
   *
   * @throws ClientError `not_permitted` for all but the owner
   * @example
   * await account.groups.rotate(groupId);
   */
  async rotate(groupId: string, options: RotationOptions & Abortable = {}): Promise<void> {
    const { rotateSecret } = await this.#core.later();
    await rotateSecret(this.#core, { ...options, groupId }, signalOf(options));
  }

  async #write(
    groupId: string,
    {
      fields,
      ...event
    }: Pick<Parameters<typeof writeChainEvent>[2], 'kind' | 'method'> & {
      readonly fields: JsonObject;
    },
    options: Abortable,
  ): Promise<void> {
    const signal = signalOf(options);
    await writeChainEvent(this.#core, groupId, { ...event, signal, fields: () => fields });
  }
}

function distinct(accounts: readonly string[]): string[] {
  return [...new Set(accounts)];
}
