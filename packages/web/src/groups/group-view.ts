import type { Group, NamedMember, PendingApplication, PendingRecovery } from '@posthouse/client';
import type { App } from '../state/app.ts';

/** All that a screen of one group shows; what only the host has is empty until it answered. */
export interface GroupView {
  readonly group: Group;
  readonly members: readonly NamedMember[];
  readonly applications: readonly PendingApplication[];
  readonly recoveries: readonly PendingRecovery[];
}

export interface GroupProps {
  readonly app: App;
  readonly view: GroupView;
  /** Does something, and shows the group as it is then. Returns whether it succeeded. */
  readonly act: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** The name that this person has among the members; empty without one. */
export function ownNickname(app: App, { members }: GroupView): string {
  return members.find(({ account }) => account === app.account.id)?.nickname ?? '';
}
