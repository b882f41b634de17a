import {
  type Application,
  allow,
  type Caller,
  type Code,
  conflictCode,
  conflictIf,
  type Hints,
  type Invite,
  type Link,
  type Member,
  type Policy,
  type Recovery,
  Refusal,
  type Role,
  union,
} from './ground.ts';
import { ModelReads } from './reads.ts';

/** Everything that is an event of the chain, and the preparation of one. */
export class Reference extends ModelReads {
  update(
    by: Caller,
    link: Link & {
      readonly name?: string | undefined;
      readonly capacity?: number | undefined;
      readonly policy?: Policy | undefined;
    },
  ): Hints {
    this.requireOwner(by);
    this.requireHead(link.prev);
    const { name = this.name, capacity = this.capacity, policy = this.policy } = link;
    if (capacity > this.capacity && capacity > this.settings.capacityCap) {
      throw new Refusal('bad_request');
    }
    Object.assign(this, { name, capacity, policy });
    this.append(link);
    return { timeline: true };
  }

  setRole(
    by: Caller,
    link: Link & { readonly account: string; readonly role: Exclude<Role, 'owner'> },
  ): Hints {
    this.requireOwner(by);
    this.requireHead(link.prev);
    const member = this.members.get(link.account);
    if (member === undefined || member.role === 'owner') throw new Refusal('state_conflict');
    member.role = link.role;
    this.append(link);
    return { timeline: true };
  }

  transfer(by: Caller, link: Link & { readonly to: string }): Hints {
    this.requireOwner(by);
    const target = this.members.get(link.to);
    allow(target !== undefined && link.to !== by.account && !this.bans.has(link.to));
    this.requireHead(link.prev);
    (this.members.get(this.owner) as Member).role = 'member';
    (target as Member).role = 'owner';
    this.owner = link.to;
    this.staging = undefined;
    this.append(link);
    return { timeline: true };
  }

  close(by: Caller, link: Link): Hints {
    this.requireOwner(by);
    this.requireHead(link.prev);
    for (const device of this.intervals.keys()) this.shut(device, true);
    this.append(link);
    this.status = 'closed';
    return { timeline: true };
  }

  leave(by: Caller, link: Link): Hints {
    allow(this.requireMember(by).role !== 'owner');
    this.requireHead(link.prev);
    return this.part(link, [by.account]);
  }

  remove(by: Caller, link: Link & { readonly accounts: readonly string[] }): Hints {
    const { role } = this.requireManager(by);
    for (const account of link.accounts) {
      const target = this.members.get(account)?.role;
      allow(account !== by.account && target !== 'owner');
      if (role === 'administrator') allow(target !== 'administrator');
    }
    this.requireHead(link.prev);
    conflictIf(!link.accounts.every((account) => this.members.has(account)));
    return this.part(link, link.accounts);
  }

  ban(by: Caller, link: Link & { readonly accounts: readonly string[] }): Hints {
    const { role } = this.requireManager(by);
    for (const account of link.accounts) {
      const target = this.members.get(account)?.role;
      allow(target !== 'owner');
      if (role === 'administrator') allow(target !== 'administrator');
    }
    this.requireHead(link.prev);
    const added = link.accounts.filter((account) => !this.bans.has(account));
    conflictIf(added.length > 0 && this.bans.size + added.length > this.settings.banCap);
    const listed = added.some((account) => this.isPending(account));
    const stored = added.filter((account) => this.applications.delete(account));
    for (const account of added) this.bans.add(account);
    const members = link.accounts.filter((account) => this.members.has(account));
    const hints = this.part(link, members);
    if (stored.length === 0) return hints;
    const told = { ...hints, applications: this.managers() };
    return listed ? told : { ...told, mayOmit: 'applications' };
  }

  unban(by: Caller, link: Link & { readonly accounts: readonly string[] }): Hints {
    this.requireManager(by);
    this.requireHead(link.prev);
    for (const account of link.accounts) this.bans.delete(account);
    this.append(link);
    return { timeline: true };
  }

  /** Ends memberships, if there are any to end, with the event of the link (05 §9.1, §9.2). */
  part(link: Link, accounts: readonly string[]): Hints {
    const asked = accounts.filter((account) => this.isAsking(account));
    const roles = asked.map((account) => this.members.get(account)?.role);
    for (const account of accounts) {
      for (const device of this.devicesOf(account)) this.shut(device, false);
    }
    for (const account of accounts) {
      this.members.delete(account);
      this.recoveries.delete(account);
      this.staging?.boxes.delete(account);
    }
    this.append(link, { advances: accounts.length > 0 });
    if (asked.length === 0) return { timeline: true };
    return { timeline: true, recoveries: this.viewers(roles) };
  }

  approve(
    by: Caller,
    link: Link & { readonly commitment: string; readonly keys: ReadonlyMap<string, string> },
  ): Hints {
    this.requireManager(by);
    this.requireHead(link.prev);
    const accounts = [...link.keys.keys()];
    const found = accounts.map((account) => this.applications.get(account));
    if (found.includes(undefined)) throw new Refusal('not_found');
    const applications = found as Application[];
    conflictIf(link.commitment !== this.commitment);
    conflictIf(this.members.size + accounts.length > this.capacity);
    conflictIf(accounts.some((each) => this.members.has(each) || this.bans.has(each)));
    conflictIf(accounts.some((each, index) => link.keys.get(each) !== applications[index]?.key));
    conflictIf(!accounts.every((account) => this.isPending(account)));
    const used = Map.groupBy(applications, ({ invite }) => invite);
    conflictIf([...used].some(([id, some]) => this.usesLeft(id) < some.length));
    for (const [id, some] of used) (this.invites.get(id) as Invite).uses += some.length;
    this.append(link, { advances: true });
    for (const [index, account] of accounts.entries()) {
      const { key, device } = applications[index] as Application;
      this.applications.delete(account);
      this.members.set(account, { role: 'member', key, since: this.sequence });
      this.open(device, this.sequence, this.epoch);
    }
    return { timeline: true, applications: this.managers() };
  }

  recover(
    by: Caller,
    link: Link & { readonly commitment: string; readonly keys: ReadonlyMap<string, string> },
  ): Hints {
    const { role } = this.requireManager(by);
    const accounts = [...link.keys.keys()];
    const roles = accounts.map((account) => this.members.get(account)?.role);
    const isMissing = !accounts.every((account) => this.isAsking(account));
    for (const [index, account] of accounts.entries()) {
      if (role === 'owner') continue;
      allow(account !== by.account);
      allow(roles[index] === 'member' || roles[index] === undefined);
    }
    // A target that left: no request, no member, or no right of the administrator.
    if (roles.includes(undefined)) {
      const codes: readonly Code[] = role === 'owner' ? [] : ['forbidden'];
      throw new Refusal('not_found', 'state_conflict', ...codes);
    }
    this.requireHead(link.prev);
    const isStale =
      link.commitment !== this.commitment ||
      accounts.some((each) => this.recoveries.get(each)?.key !== link.keys.get(each));
    if (isMissing)
      throw new Refusal('not_found', ...(isStale ? (['state_conflict'] as const) : []));
    conflictIf(isStale);
    for (const account of accounts) {
      for (const device of this.devicesOf(account)) this.shut(device, false);
    }
    this.append(link, { advances: true });
    for (const account of accounts) {
      const { device, key } = this.recoveries.get(account) as Recovery;
      this.recoveries.delete(account);
      this.staging?.boxes.delete(account);
      (this.members.get(account) as Member).key = key;
      this.open(device, this.sequence, this.epoch);
    }
    return { timeline: true, recoveries: union(this.viewers(roles), accounts) };
  }

  prepare(
    by: Caller,
    batch: {
      readonly base: string;
      readonly commitment: string;
      readonly keys: ReadonlyMap<string, string>;
    },
  ): { readonly prepared: number; readonly expires_at: number } {
    const { base, commitment, keys } = batch;
    if (base === commitment) throw new Refusal('bad_request');
    this.requireOwner(by);
    this.requireOpen();
    const isForMembers = [...keys.keys()].every((account) => this.members.has(account));
    const now = this.settings.now();
    const continued = this.staging?.commitment === commitment ? this.staging : undefined;
    const isConflict =
      base !== this.commitment ||
      (continued !== undefined &&
        (continued.base !== base ||
          continued.account !== by.account ||
          continued.expiresAt <= now));
    if (!isForMembers) throw new Refusal('bad_request', ...(isConflict ? conflictCode : []));
    conflictIf(isConflict);
    const { account } = by;
    const expiresAt = now + this.settings.stagingPeriod;
    this.staging = continued ?? { account, base, commitment, expiresAt, boxes: new Map() };
    for (const [of, key] of keys) this.staging.boxes.set(of, key);
    return { prepared: this.staging.boxes.size, expires_at: this.staging.expiresAt };
  }

  commit(
    by: Caller,
    link: Link & { readonly commitment: string; readonly ownerKey?: string },
  ): Hints {
    this.requireOwner(by);
    this.requireHead(link.prev);
    const { staging } = this;
    const owner = this.members.get(by.account) as Member;
    const isReady =
      staging !== undefined &&
      staging.account === by.account &&
      staging.commitment === link.commitment &&
      staging.base === this.commitment &&
      staging.expiresAt > this.settings.now() &&
      [...this.members.keys()].every((account) => staging.boxes.has(account));
    if (link.ownerKey === owner.key) {
      throw new Refusal('bad_request', ...(isReady ? [] : conflictCode));
    }
    conflictIf(!isReady);
    const asked = link.ownerKey !== undefined && this.isAsking(by.account);
    if (link.ownerKey !== undefined) {
      owner.key = link.ownerKey;
      this.recoveries.delete(by.account);
    }
    this.commitment = link.commitment;
    this.staging = undefined;
    this.append(link, { advances: true });
    return asked ? { timeline: true, recoveries: [by.account] } : { timeline: true };
  }
}
