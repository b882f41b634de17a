/** Which view is shown: the address has its name alone, no account and no post. */
import { signal } from '@preact/signals';
import { notice } from './notice.ts';

export const views = {
  usage: 'Usage',
  accounts: 'Accounts',
  groups: 'Groups',
  channels: 'Channels',
  reports: 'Reports',
  blocks: 'Blocks',
  invites: 'Invites',
  relays: 'Relays',
} as const;
type View = keyof typeof views;

const viewOf = (hash: string): View => {
  const name = hash.replace(/^#\//, '');
  return Object.hasOwn(views, name) ? (name as View) : 'usage';
};

export const view = signal<View>(viewOf(location.hash));

/** What another view asks to block; the form of blocks begins with it. */
export const toBlock = signal<{ readonly kind: BlockKind; readonly id: string } | undefined>();

/** What can be blocked. */
export type BlockKind = 'account' | 'address' | 'channel' | 'relay';

addEventListener('hashchange', () => {
  notice.value = undefined;
  view.value = viewOf(location.hash);
});

/** Opens the form of blocks for something. */
export function offerBlock(kind: BlockKind, id: string): void {
  toBlock.value = { kind, id };
  location.hash = '#/blocks';
}
