// biome-ignore-all lint/style/noExcessiveLinesPerFile: one public class; half of it is examples
import type {
  ContentReference,
  GroupInvitePolicy,
  GroupMember,
  GroupProjection,
  GroupState,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { catchUpGroup } from '../groups/catch-up-groups.ts';
import {
  type GroupBlock,
  type GroupMembership,
  groupRows,
  loadGroup,
  nicknames,
} from '../groups/group-rows.ts';
import { removeSettledRecovery, requestRecovery } from '../groups/keys/recover-key.ts';
import { type RotationOptions, rotateSecret } from '../groups/keys/rotate-secret.ts';
import { createGroup, type NewGroup } from '../groups/membership/create-group.ts';
import {
  createInvite,
  type InviteTerms,
  type IssuedInvite,
  listInvites,
  revokeInvite,
} from '../groups/membership/invitations.ts';
import {
  addGroup,
  applyToGroup,
  decodeInviteAddress,
  forgetGroup,
  previewGroup,
} from '../groups/membership/join-group.ts';
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
import {
  type GroupEntry,
  type GroupMessageRow,
  groupEntry,
  listGroupEntries,
} from '../groups/timeline/group-entries.ts';
import { type SentToGroup, sendToGroup } from '../groups/timeline/send-group-message.ts';
import { writeChainEvent } from '../groups/timeline/write-chain-event.ts';
import { keyOf } from '../store/row-keys.ts';
import { type TimeLimit, withTimeLimit } from '../sync/budget.ts';
import { collectEvents } from '../sync/collect-events.ts';
import { type Abortable, signalOf } from './options.ts';

/** A group as this device knows it. */
export interface Group {
  readonly id: string;
  /** Relay ID of the host. */
  readonly relayId: string;
  readonly membership: GroupMembership;
  /** Sequence up to which it is read; -1 before the first read. */
  readonly position: number;
  /** Verified state; absent before the first read. */
  readonly state?: GroupProjection;
  /** Where its history stops to verify, and why (05 §5.5). */
  readonly blocked?: GroupBlock;
  /** Whether this device has the key that opens the group's present messages. */
  readonly hasKey: boolean;
}

/** A member with the nickname it gave itself in this group. */
export interface NamedMember extends GroupMember {
  readonly nickname?: string;
}

/** A message to a group: text, attachments, or both. */
export interface GroupDraft {
  readonly text?: string;
  /** Media type of the text; plain text by default. */
  readonly contentType?: string;
  readonly attachments?: readonly ContentReference[];
  /** Sequence of the message that is answered. */
  readonly replyTo?: number;
}

/**
 * Groups. Their state is rebuilt from the signed history, which is verified from its beginning on;
 * what a host says beside that is never believed (05 §1.2).
 *
 * @example
 * const group = await account.groups.create({ name: 'Chess club' });
 * const { text } = await account.groups.invite(group.id);
 * await other.groups.join(text);
 * await account.groups.approve(group.id, [other.id]);
 * await other.sync();
 * await other.groups.send(group.id, { text: 'Hello' });
 */
export class Groups {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /** Every group this device knows and was not told to forget, from the store. */
  async list(): Promise<Group[]> {
    return await this.#core.store.read(async (tx) => {
      const found: Group[] = [];
      for (const { group_id, isForgotten } of await groupRows(tx)) {
        if (isForgotten) continue;
        found.push(toGroup(await loadGroup(tx, group_id), this.#core.account));
      }
      return found;
    });
  }

  /** @throws ClientError `not_a_member` for a group this device does not know */
  async get(groupId: string): Promise<Group> {
    const kept = await this.#core.store.read((tx) => loadGroup(tx, groupId));
    return toGroup(kept, this.#core.account);
  }

  /**
   * Founds a group at a host that it never leaves.
   * @throws ClientError `invalid_input`; `no_relay` where the relay hosts no groups
   */
  async create(facts: NewGroup, options: Abortable = {}): Promise<Group> {
    return await this.get(await createGroup(this.#core, facts, signalOf(options)));
  }

  /**
   * Looks at the group an invitation leads to. The host's word, for display: nothing is verified.
   * @throws ClientError `verification_failed`
   */
  async preview(invitation: string, options: Abortable = {}): Promise<GroupState> {
    const address = decodeInviteAddress(this.#core, invitation);
    return await previewGroup(this.#core, address, signalOf(options));
  }

  /**
   * Applies for admission. Nobody tells an applicant of the decision: `sync` tries to read the
   * group, and gives `group-joined` once it can.
   *
   * @throws ClientError `verification_failed`, `invalid_input`
   */
  async join(invitation: string, options: Abortable = {}): Promise<Group> {
    const address = decodeInviteAddress(this.#core, invitation);
    await applyToGroup(this.#core, address, signalOf(options));
    return await this.get(address.group_id);
  }

  /**
   * Tells this device of a group the account is a member of, where no other device is left to do
   * so: it is read, and with `requestRecovery` it can be opened again.
   *
   * @throws ClientError `invalid_input`, `not_a_member`, `no_relay`
   */
  async add(
    address: { readonly groupId: string; readonly relayId: string },
    options: Abortable = {},
  ): Promise<Group> {
    await addGroup(this.#core, address, signalOf(options));
    return await this.get(address.groupId);
  }

  /**
   * Forgets a group that was left or closed, or whose history does not verify, or an application
   * nobody decided about. What was read of it stays in the store, and counts again if it is joined
   * anew.
   *
   * @param options.evenAsMember also a group that cannot be left because its host is gone
   * @throws ClientError `invalid_input` for a member: leave first
   */
  async forget(groupId: string, options: { readonly evenAsMember?: boolean } = {}): Promise<void> {
    await forgetGroup(this.#core, groupId, options);
  }

  /** Catches one group up. @returns what happened */
  async sync(groupId: string, options: Abortable = {}): Promise<GroupAccountEvent[]> {
    const core = this.#core;
    const read = (limit: TimeLimit) => catchUpGroup(core, groupId, limit);
    const events = await collectEvents(withTimeLimit(core, signalOf(options), read));
    if (events.some(({ kind }) => kind === 'group-joined')) this.#core.eventBuffer.wake();
    return events;
  }

  /**
   * Sends a message. Where the host's answer is lost it is kept, and goes out again with `sync`.
   *
   * @throws ClientError `not_a_member`, `not_permitted`, `group_key_missing`, `invalid_input`
   * @throws RelayRefused, RelayUnreachable
   */
  async send(groupId: string, draft: GroupDraft, options: Abortable = {}): Promise<SentToGroup> {
    const content = groupMessageContent(this.#core, draft);
    return await sendToGroup(this.#core, { groupId, content }, signalOf(options));
  }

  /** Sets the own nickname in one group; `null` clears it. */
  async setNickname(
    groupId: string,
    nickname: string | null,
    options: Abortable = {},
  ): Promise<SentToGroup> {
    const content = { $type: this.#core.network.type('group.member.nickname.update'), nickname };
    return await sendToGroup(this.#core, { groupId, content }, signalOf(options));
  }

  /** The timeline: messages, changes, and what was rejected; oldest first. */
  async entries(
    groupId: string,
    range: { readonly after?: number; readonly limit?: number; readonly last?: number } = {},
  ): Promise<GroupEntry[]> {
    return await this.#core.store.read((tx) => listGroupEntries(tx, groupId, range));
  }

  /** Messages of people, decrypted; oldest first. */
  async messages(
    groupId: string,
    range: { readonly after?: number; readonly last?: number } = {},
  ): Promise<GroupMessageRow[]> {
    const entries = await this.entries(groupId, range);
    return entries.filter((entry) => isGroupMessage(this.#core, entry));
  }

  /**
   * The message another one answers. `undefined` where there is none, or it is not here, or what
   * the sequence names is no message of people (05 §14.3).
   */
  async replied(message: GroupMessageRow): Promise<GroupMessageRow | undefined> {
    const sequence = message.content?.reply_to_seq;
    if (typeof sequence !== 'number' || !isGroupMessage(this.#core, message)) return undefined;
    const { store } = this.#core;
    const entry = await store.read((tx) => groupEntry(tx, message.group_id, sequence));
    return entry !== undefined && isGroupMessage(this.#core, entry) ? entry : undefined;
  }

  /** Members of the verified state, with their nicknames. */
  async members(groupId: string): Promise<NamedMember[]> {
    return await this.#core.store.read(async (tx) => {
      const { group } = await loadGroup(tx, groupId);
      const found: NamedMember[] = [];
      for (const member of group?.members.values() ?? []) {
        const nickname = (await nicknames.get(tx, keyOf(groupId, member.account)))?.nickname;
        found.push({ ...member, ...(typeof nickname === 'string' && { nickname }) });
      }
      return found;
    });
  }

  /**
   * Makes an invitation; its `text` is for a link or a QR code.
   * @throws ClientError `not_permitted`, `invalid_input`
   */
  async invite(
    groupId: string,
    terms: InviteTerms = {},
    options: Abortable = {},
  ): Promise<IssuedInvite> {
    return await createInvite(this.#core, { groupId, terms }, signalOf(options));
  }

  /** The valid invitations this account may see. */
  async invites(groupId: string, options: Abortable = {}): Promise<IssuedInvite[]> {
    return await listInvites(this.#core, groupId, signalOf(options));
  }

  /** Ends an invitation, and the applications that wait by it. */
  async revokeInvite(groupId: string, inviteId: string, options: Abortable = {}): Promise<void> {
    await revokeInvite(this.#core, { groupId, inviteId }, signalOf(options));
  }

  /** Applications that wait, each verified. */
  async applications(groupId: string, options: Abortable = {}): Promise<PendingApplication[]> {
    return await listApplications(this.#core, groupId, signalOf(options));
  }

  /**
   * Admits applicants, after every check of their applications and invitations.
   * @throws ClientError `invalid_input`, `not_permitted`, `group_key_missing`
   */
  async approve(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await approveApplications(this.#core, { groupId, accounts }, signalOf(options));
  }

  async reject(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await rejectApplications(this.#core, { groupId, accounts }, signalOf(options));
  }

  /** Changes properties; what is left out stays. @throws ClientError `not_permitted` */
  async update(
    groupId: string,
    facts: {
      readonly name?: string;
      readonly description?: string;
      readonly capacity?: number;
      readonly invitePolicy?: GroupInvitePolicy;
    },
    options: Abortable = {},
  ): Promise<void> {
    const { name, description, capacity, invitePolicy } = facts;
    const fields = {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(capacity !== undefined && { member_capacity: capacity }),
      ...(invitePolicy !== undefined && { invite_policy: invitePolicy }),
    };
    await this.#manage(groupId, { kind: 'group.update', method: 'group.update', fields }, options);
  }

  /** @throws ClientError `not_permitted` for all but the owner */
  async setRole(
    groupId: string,
    member: { readonly account: string; readonly role: 'administrator' | 'member' },
    options: Abortable = {},
  ): Promise<void> {
    const { account, role } = member;
    const act = { kind: 'group.role.update', method: 'group.role.update' } as const;
    await this.#manage(groupId, { ...act, fields: { account, role } }, options);
  }

  /** Makes another member the owner; the own account stays as an ordinary member. */
  async transfer(groupId: string, account: string, options: Abortable = {}): Promise<void> {
    const act = { kind: 'group.owner.transfer', method: 'group.owner.transfer' } as const;
    await this.#manage(groupId, { ...act, fields: { new_owner_account: account } }, options);
  }

  /** Leaves; the owner transfers the group first. */
  async leave(groupId: string, options: Abortable = {}): Promise<void> {
    const act = { kind: 'group.member.leave', method: 'group.member.leave' } as const;
    await this.#manage(groupId, { ...act, fields: { account: this.#core.account } }, options);
  }

  /** Removes members. They may apply again; the client secret they know stays the same. */
  async remove(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    const act = { kind: 'group.member.removal', method: 'group.member.remove' } as const;
    await this.#manage(groupId, { ...act, fields: { accounts: distinct(accounts) } }, options);
  }

  /** Bans accounts, and removes those that are members. */
  async ban(groupId: string, accounts: readonly string[], options: Abortable = {}): Promise<void> {
    const act = { kind: 'group.member.ban', method: 'group.member.ban' } as const;
    await this.#manage(groupId, { ...act, fields: { accounts: distinct(accounts) } }, options);
  }

  /** Lifts bans, and nothing else. */
  async unban(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    const act = { kind: 'group.member.unban', method: 'group.member.unban' } as const;
    await this.#manage(groupId, { ...act, fields: { accounts: distinct(accounts) } }, options);
  }

  /** Closes the group for good. */
  async close(groupId: string, options: Abortable = {}): Promise<void> {
    await this.#manage(
      groupId,
      { kind: 'group.close', method: 'group.close', fields: {} },
      options,
    );
  }

  /**
   * Asks for a new member key, where the old one is lost on all devices. The key is taken into use
   * only once the verified history names it and its box opens (05 §17.4).
   *
   * @returns Unix seconds until which the request can be approved
   */
  async requestRecovery(groupId: string, options: Abortable = {}): Promise<number> {
    return await requestRecovery(this.#core, groupId, signalOf(options));
  }

  /** Key recovery requests this account may see, each verified. */
  async recoveries(groupId: string, options: Abortable = {}): Promise<PendingRecovery[]> {
    return await listRecoveries(this.#core, groupId, signalOf(options));
  }

  /** @throws ClientError `invalid_input`, `not_permitted`, `group_key_missing` */
  async approveRecovery(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await approveRecoveries(this.#core, { groupId, accounts }, signalOf(options));
  }

  /** Rejects requests of others; the own account's is withdrawn. */
  async rejectRecovery(
    groupId: string,
    accounts: readonly string[],
    options: Abortable = {},
  ): Promise<void> {
    await rejectRecoveries(this.#core, { groupId, accounts }, signalOf(options));
    await removeSettledRecovery(this.#core, groupId, signalOf(options));
  }

  /**
   * Replaces the client secret, so that nobody but the present members can read what follows, not
   * even together with the host. Interrupted, it goes on where it stood when called again.
   *
   * @throws ClientError `not_permitted` for all but the owner
   */
  async rotate(groupId: string, options: RotationOptions & Abortable = {}): Promise<void> {
    await rotateSecret(this.#core, { ...options, groupId }, signalOf(options));
  }

  async #manage(
    groupId: string,
    {
      fields,
      ...act
    }: Pick<Parameters<typeof writeChainEvent>[2], 'kind' | 'method'> & {
      readonly fields: JsonObject;
    },
    options: Abortable,
  ): Promise<void> {
    const signal = signalOf(options);
    await writeChainEvent(this.#core, groupId, { ...act, signal, fields: () => fields });
  }
}

function distinct(accounts: readonly string[]): string[] {
  return [...new Set(accounts)];
}

function toGroup({ row, group }: Awaited<ReturnType<typeof loadGroup>>, self: string): Group {
  const { group_id: id, relay_id: relayId, standing, position, blocked, activeKey } = row;
  const key = group?.members.get(self)?.member_encryption_public_key;
  return {
    id,
    relayId,
    membership: standing,
    position,
    ...(group !== undefined && { state: group }),
    ...(blocked !== undefined && { blocked }),
    // Somebody may have given the account another key, at the wish of another device or at
    // nobody's.
    hasKey: activeKey !== undefined && activeKey === key,
  };
}

function isGroupMessage(core: AccountCore, entry: GroupEntry): entry is GroupMessageRow {
  if (entry.kind !== 'message' || entry.outcome !== 'applied') return false;
  return entry.content?.$type === core.network.type('group.message.content');
}

function groupMessageContent({ network }: AccountCore, draft: GroupDraft): JsonObject {
  const { text, contentType = 'text/plain', attachments = [], replyTo } = draft;
  if (text === undefined && attachments.length === 0) {
    throw new ClientError('invalid_input', 'neither text nor attachments');
  }
  return {
    $type: network.type('group.message.content'),
    ...(text !== undefined && { body: { content_type: contentType, text } }),
    ...(attachments.length > 0 && { attachments: [...attachments] }),
    ...(replyTo !== undefined && { reply_to_seq: replyTo }),
  };
}
