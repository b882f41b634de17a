/**
 * A dumb second implementation of the table in chapter 05, section 5.4, to hold the reducer
 * against: it knows accounts as letters and nothing of JSON, signatures or digests.
 */
type Role = 'owner' | 'administrator' | 'member';

export interface Command {
  readonly kind: string;
  readonly by: string;
  readonly targets: readonly string[];
  readonly role: 'administrator' | 'member';
  readonly capacity: number;
  /** A number for every key and every commitment. */
  readonly value: number;
  readonly withKey: boolean;
}

export interface Model {
  roles: Record<string, Role>;
  keys: Record<string, number>;
  bans: Set<string>;
  capacity: number;
  commitment: number;
  closed: boolean;
}

/** Applies a command; `undefined` where the table forbids it. The second part: does the epoch rise? */
export function oracle(
  model: Model,
  command: Command,
): { next: Model; rises: boolean } | undefined {
  const { kind, by, targets, role, capacity, value, withKey } = command;
  const mine = model.roles[by];
  if (mine === undefined || model.bans.has(by) || model.closed) return undefined;
  const next: Model = {
    ...model,
    roles: { ...model.roles },
    keys: { ...model.keys },
    bans: new Set(model.bans),
  };
  const [first = ''] = targets;
  const done = (rises: boolean) => ({ next, rises });
  const drop = (who: string) => {
    delete next.roles[who];
    delete next.keys[who];
  };
  if (kind === 'message') return done(false);
  if (kind === 'leave') {
    if (first !== by || mine === 'owner') return undefined;
    drop(by);
    return done(true);
  }
  if (mine === 'member') return undefined;
  if (kind === 'unban') {
    for (const who of targets) next.bans.delete(who);
    return done(false);
  }
  if (kind === 'admit') {
    if (targets.some((who) => model.roles[who] !== undefined || model.bans.has(who))) {
      return undefined;
    }
    for (const who of targets) {
      next.roles[who] = 'member';
      next.keys[who] = value;
    }
    return Object.keys(next.roles).length > model.capacity ? undefined : done(true);
  }
  const mayTouch = (who: string) =>
    model.roles[who] !== 'owner' && (mine === 'owner' || model.roles[who] !== 'administrator');
  if (kind === 'remove') {
    if (targets.some((who) => !mayTouch(who) || model.roles[who] === undefined)) return undefined;
    for (const who of targets) drop(who);
    return done(true);
  }
  if (kind === 'ban') {
    if (targets.some((who) => !mayTouch(who))) return undefined;
    const members = targets.filter((who) => model.roles[who] !== undefined);
    for (const who of members) drop(who);
    for (const who of targets) next.bans.add(who);
    return done(members.length > 0);
  }
  if (kind === 'recover') {
    const may = (who: string) =>
      mine === 'owner' ? model.roles[who] !== undefined : model.roles[who] === 'member';
    if (!targets.every(may)) return undefined;
    for (const who of targets) next.keys[who] = value;
    return done(true);
  }
  if (mine !== 'owner') return undefined;
  switch (kind) {
    case 'update':
      next.capacity = capacity;
      return done(false);
    case 'role': {
      const present = model.roles[first];
      if (present === undefined || present === 'owner') return undefined;
      next.roles[first] = role;
      return done(false);
    }
    case 'transfer':
      if (first === by || model.roles[first] === undefined) return undefined;
      next.roles[by] = 'member';
      next.roles[first] = 'owner';
      return done(false);
    case 'rotate':
      if (value === model.commitment || (withKey && value === model.keys[by])) return undefined;
      next.commitment = value;
      if (withKey) next.keys[by] = value;
      return done(true);
    case 'close':
      next.closed = true;
      return done(false);
    default:
      throw new Error(`no command ${kind}`);
  }
}
