import {
  type Application,
  allow,
  type Caller,
  type Code,
  type Hints,
  type Invite,
  ModelGround,
  type Recovery,
  Refusal,
  union,
} from './ground.ts';

/** Invitations, applications and recovery requests, until they are approved. */
export class ModelRequests extends ModelGround {
  isUsable(id: string, account?: string): boolean {
    const invite = this.invites.get(id);
    if (invite === undefined || invite.isRevoked || invite.isForgotten) return false;
    if (invite.expiresAt <= this.settings.now() || this.usesLeft(id) === 0) return false;
    return invite.invitee === undefined || account === undefined || invite.invitee === account;
  }

  usesLeft(id: string): number {
    const { invitee, maxUses, uses } = this.invites.get(id) as Invite;
    return (invitee === undefined ? (maxUses ?? Number.POSITIVE_INFINITY) : 1) - uses;
  }

  createInvite(
    by: Caller,
    id: string,
    {
      createdAt,
      ...facts
    }: Pick<Invite, 'invitee' | 'maxUses' | 'expiresAt'> & { readonly createdAt: number },
  ): Hints {
    this.requireDevice(by);
    const now = this.settings.now();
    const codes: Code[] = [];
    if (facts.expiresAt <= now) codes.push('bad_request');
    if (facts.expiresAt - createdAt > this.settings.inviteTtl) codes.push('bad_request');
    if (Math.abs(createdAt - now) > this.settings.tolerance) codes.push('clock_skew');
    if (codes.length > 0) throw new Refusal(...codes);
    const { role } = this.requireMember(by);
    const isPublic = facts.invitee === undefined;
    allow(
      role !== 'member' ||
        this.policy === 'members_shareable' ||
        (this.policy === 'members_targeted' && !isPublic),
    );
    this.requireOpen();
    const present = this.invites.get(id);
    if (present !== undefined && !present.isForgotten) throw new Refusal('state_conflict');
    const { account: inviter } = by;
    const flags = { isRevoked: false, isKnownOver: false, isForgotten: false };
    this.invites.set(id, { inviter, ...facts, uses: 0, ...flags });
    return {};
  }

  isStored(id: string): boolean {
    const invite = this.invites.get(id);
    return invite !== undefined && !invite.isForgotten;
  }

  resolveInvite(by: Caller, id: string): Invite {
    const { role } = this.requireMember(by);
    const invite = this.invites.get(id) as Invite;
    const isAllowed = role !== 'member' || invite.inviter === by.account;
    if (!isAllowed && !this.isUsable(id)) throw new Refusal('forbidden', 'not_found');
    allow(isAllowed);
    if (!this.isUsable(id)) throw new Refusal('not_found');
    return invite;
  }

  /** IDs of the invitations that an account sees (05 §13.11). */
  visibleInvites(by: Caller): string[] {
    const { role } = this.requireMember(by);
    return [...this.invites]
      .filter(([, { inviter }]) => role !== 'member' || inviter === by.account)
      .map(([id]) => id)
      .filter((id) => this.isUsable(id));
  }

  revokeInvite(by: Caller, id: string): Hints {
    const { role } = this.requireMember(by);
    const invite = this.invites.get(id) as Invite;
    if (this.isStored(id)) allow(role === 'owner' || invite.inviter === by.account);
    this.requireOpen();
    if (!this.isStored(id)) throw new Refusal('not_found');
    if (invite.isRevoked) throw new Refusal('state_conflict');
    if (!this.isUsable(id)) throw new Refusal('not_found');
    const rested = [...this.applications.values()].some((each) => each.invite === id);
    invite.isRevoked = true;
    return rested ? { applications: this.managers() } : {};
  }

  /** Whether an account may resolve the group, with an invitation or without (05 §13.3). */
  look(by: Caller, invite: string | undefined): void {
    this.requireDevice(by);
    allow(!this.bans.has(by.account));
    if (this.members.has(by.account)) return;
    allow(invite !== undefined && this.isUsable(invite, by.account));
  }

  apply(by: Caller, { invite, key, object }: Omit<Application, 'device'>): Hints {
    this.requireDevice(by);
    const { account, device } = by;
    allow(!this.bans.has(account));
    if (this.members.has(account)) throw new Refusal('state_conflict');
    allow(this.isUsable(invite, account));
    this.requireOpen();
    if (this.applications.get(account)?.object === object) return {};
    this.applications.set(account, { invite, key, object, device });
    return { applications: this.managers() };
  }

  /** An application that is in the list (05 §8.2). */
  isPending(account: string): boolean {
    const application = this.applications.get(account);
    return application !== undefined && this.isUsable(application.invite, account);
  }

  /** Accounts whose applications an account sees (05 §13.14). */
  visibleApplications(by: Caller): string[] {
    this.requireManager(by);
    return [...this.applications.keys()].filter((account) => this.isPending(account));
  }

  rejectApplications(by: Caller, accounts: readonly string[]): Hints {
    this.requireManager(by);
    this.requireOpen();
    if (!accounts.every((account) => this.isPending(account))) throw new Refusal('not_found');
    for (const account of accounts) this.applications.delete(account);
    return { applications: this.managers() };
  }

  isAsking(account: string): boolean {
    const recovery = this.recoveries.get(account);
    return recovery !== undefined && recovery.expiresAt > this.settings.now();
  }

  submitRecovery(by: Caller, { key, object }: Pick<Recovery, 'key' | 'object'>): Hints {
    const member = this.requireMember(by);
    this.requireOpen();
    if (key === member.key) throw new Refusal('bad_request');
    const { account, device } = by;
    if (this.isAsking(account) && this.recoveries.get(account)?.object === object) return {};
    const acceptedAt = this.settings.now();
    const expiresAt = acceptedAt + this.settings.recoveryWait;
    this.recoveries.set(account, { device, key, object, acceptedAt, expiresAt });
    return { recoveries: union(this.viewers([member.role]), [account]) };
  }

  /** Accounts whose requests an account sees (05 §13.22). */
  visibleRecoveries(by: Caller): string[] {
    const { role } = this.requireMember(by);
    return [...this.recoveries.keys()].filter((account) => {
      if (!this.isAsking(account)) return false;
      if (role === 'owner' || account === by.account) return true;
      return role === 'administrator' && this.members.get(account)?.role === 'member';
    });
  }

  rejectRecoveries(by: Caller, accounts: readonly string[]): Hints {
    const { role } = this.requireMember(by);
    const roles = accounts.map((account) => this.members.get(account)?.role);
    for (const [index, account] of accounts.entries()) {
      if (account === by.account || role === 'owner') continue;
      // An account that is no member has no request either.
      if (roles[index] === undefined && role === 'administrator') {
        throw new Refusal('forbidden', 'not_found', 'state_conflict');
      }
      allow(role === 'administrator' && roles[index] === 'member');
    }
    this.requireOpen();
    if (!accounts.every((account) => this.isAsking(account))) throw new Refusal('not_found');
    for (const account of accounts) this.recoveries.delete(account);
    return { recoveries: union(this.viewers(roles), accounts) };
  }

  /** Ends what has expired; returns the notices that are due. */
  expire(): Hints {
    const now = this.settings.now();
    let hints: Hints = {};
    for (const [id, invite] of this.invites) {
      const rested = [...this.applications].filter(([, each]) => each.invite === id);
      if (this.isUsable(id)) continue;
      const isNew = !invite.isRevoked && this.usesLeft(id) > 0 && !invite.isKnownOver;
      invite.isKnownOver = true;
      if (isNew && rested.length > 0) hints = { ...hints, applications: this.managers() };
      for (const [account] of rested) this.applications.delete(account);
      if (invite.expiresAt + 604_800 <= now) invite.isForgotten = true;
    }
    const over = [...this.recoveries].filter(([, { expiresAt }]) => expiresAt <= now);
    if (over.length === 0) return hints;
    const accounts = over.map(([account]) => account);
    const roles = accounts.map((account) => this.members.get(account)?.role);
    for (const account of accounts) this.recoveries.delete(account);
    return { ...hints, recoveries: union(this.viewers(roles), accounts) };
  }
}
