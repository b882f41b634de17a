/** Each screen of the messenger: how a person gets there, what shows that it is there, and what no screen may have. */
import type { AnyPage } from './any-page.ts';
import { type Office, post } from './office.ts';

/** Addresses of a group and of a channel that another person has. */
export interface Addresses {
  readonly group: string;
  readonly channel: string;
}

/** A screen of a person with an account. */
export interface Screen {
  readonly name: string;
  /** Leads there from the list of conversations. */
  readonly open: (page: AnyPage, addresses: Addresses) => Promise<void>;
  /** Texts that are on the screen once it is whole. */
  readonly shows: readonly string[];
  /** What has them; `main` if absent. */
  readonly within?: string;
}

/** Widths in CSS pixels: usual; of a window of 1,280 at 200 %; the narrowest. */
export const widths = { wide: 1_280, double: 640, narrow: 320 } as const;

/** A page of the settings, by its title. */
const settingsPage = (name: string, title: string, more: string): Screen => ({
  name,
  async open(page) {
    await page.click('Settings');
    await page.click(title);
  },
  shows: [title, more],
});

const makeRoom = async (page: AnyPage, kind: 'group' | 'channel', name: string) => {
  await page.click(`New ${kind}`);
  await page.type('Name', name);
  await page.click(`Make the ${kind}`);
};

/** In this order: later ones use what earlier ones made. */
export const screens: readonly Screen[] = [
  { name: 'list', open: async () => {}, shows: ['asks to write to you', 'Bob'], within: '.pane' },
  {
    name: 'conversation',
    open: (page) => page.clickText('.entry', 'Bob'),
    shows: ['Bob', 'rehearsal', 'I will be there.', 'Send'],
  },
  {
    name: 'conversation-rtl',
    open: (page) => page.clickText('.entry', 'ليلى'),
    shows: ['ليلى بنت عبد الله', 'هل نلتقي غدا؟'],
  },
  {
    name: 'person',
    async open(page) {
      await page.clickText('.entry', 'Bob');
      await page.click('Person');
    },
    shows: ['Bob', 'Name on your devices'],
  },
  {
    name: 'add-person',
    async open(page) {
      await page.click('Add a person');
      await page.click('Make an invite');
      await page.seeElement('main svg[aria-label="QR code: Your invite"]');
    },
    shows: ['Add a person', 'Copy', 'Open an invite'],
  },
  {
    name: 'settings',
    open: (page) => page.click('Settings'),
    shows: ['Name that others see', 'Erase this device', 'Storage'],
  },
  {
    name: 'backup',
    open: (page) => page.click('Save a backup'),
    shows: ['Save a backup', 'Password again'],
  },
  settingsPage('devices', 'Devices', 'this device'),
  settingsPage('home', 'Relay', 'What this relay can see about you'),
  settingsPage('lock', 'Lock this device', 'Password again'),
  settingsPage('notifications', 'Notifications', 'Who wrote, and the beginning of the text'),
  settingsPage('blocked', 'Blocked people', 'You blocked '),
  settingsPage('export', 'Save what is on this device', 'As JSON'),
  settingsPage('erase', 'Erase this device', 'I know that this cannot be undone'),
  {
    name: 'add-device',
    async open(page) {
      await page.click('Settings');
      await page.click('Devices');
      await page.click('Add a device');
      await page.seeElement('main svg[aria-label^="QR code"]');
    },
    shows: ['Add a device', 'since '],
  },
  {
    name: 'new-group',
    open: (page) => page.click('New group'),
    shows: ['New group', 'Who may invite others'],
  },
  {
    name: 'group',
    async open(page) {
      await makeRoom(page, 'group', 'Chess club');
      await page.click('Make a link');
      await page.see('Copy', 'main');
    },
    shows: ['Chess club', 'Members', 'Invite a contact'],
  },
  {
    name: 'group-conversation',
    async open(page) {
      await page.clickText('.entry', 'Chess club');
      await page.enter('Write a message', 'Who brings a clock?');
      await page.see('at their relay', '.own');
    },
    shows: ['Chess club', 'Who brings a clock?'],
  },
  {
    name: 'new-channel',
    open: (page) => page.click('New channel'),
    shows: ['New channel', 'What it is about'],
  },
  {
    name: 'channel',
    open: (page) => makeRoom(page, 'channel', 'Chess news'),
    shows: ['Chess news', 'Link to this channel', 'Close the channel'],
  },
  {
    name: 'channel-conversation',
    async open(page) {
      await page.clickText('.entry', 'Chess news');
      await page.enter('Write a message', 'Round one: a draw');
      await page.see('More', '.own');
    },
    shows: ['Chess news', 'Round one: a draw'],
  },
  {
    name: 'post',
    async open(page) {
      await page.clickText('.entry', 'Chess news');
      await page.clickText('.own button', 'More');
    },
    shows: ['Post', 'Round one: a draw', 'Delete the post'],
  },
  {
    name: 'invitation-link',
    open: (page, { group }) => page.openLink('group', group),
    shows: ['Rowing', 'Decline'],
  },
  {
    name: 'channel-link',
    open: (page, { channel }) => page.openLink('channel', channel),
    shows: ['Rowing news', 'On the water at six', 'Follow'],
  },
];

/** Opens a screen from anywhere, and waits until it is there. */
export async function showScreen(
  page: AnyPage,
  { open, shows, within = 'main' }: Screen,
  addresses: Addresses,
): Promise<void> {
  await page.toList();
  await open(page, addresses);
  for (const text of shows) await page.see(text, within);
}

/** Gives the page's person a group and a channel of another person, before there is an account. */
export async function makeRooms(office: Office): Promise<Addresses> {
  const owner = await office.newPerson();
  const { id } = await owner.groups.create({ name: 'Rowing', description: 'Each Sunday' });
  const channel = await owner.channels.create({ name: 'Rowing news' });
  await owner.channels.post(channel.id, { text: 'On the water at six' });
  await owner.sync();
  return { group: (await owner.groups.invite(id)).text, channel: channel.link };
}

/** Makes an account, people it knows, what they wrote, and a request. */
export async function makePeople(page: AnyPage, office: Office): Promise<void> {
  await page.click('New account');
  await page.see('Add a person', 'button');
  const invite = async () => {
    await page.toList();
    await page.click('Add a person');
    await page.click('Make an invite');
    const { hash } = new URL(await page.valueOf('Write to me'));
    await page.toList();
    return decodeURIComponent(hash.replace('#invite=', ''));
  };
  const befriend = async (name: string) => {
    const person = await office.newPerson();
    await person.contacts.join(await invite());
    await page.type('Name on your devices', name);
    await page.click('Accept');
    await page.see(name, '.entry');
    await person.sync();
    return person;
  };
  const bob = await befriend('Bob');
  const layla = await befriend('ليلى بنت عبد الله');
  const zoe = await office.newPerson();
  await zoe.contacts.join(await invite(), { note: 'Zoe, from the choir' });
  const [contact] = await bob.contacts.list();
  for (const text of [
    'Good morning! The **rehearsal** is at *seven* today.\n\n- scores\n- pencil',
    '> Is there a map?\n\nYes: <https://example.com/a/very/long/address/that/has/no/end/at/all>',
  ]) {
    await bob.messages.post(contact?.account as string, { text, contentType: 'text/markdown' });
  }
  await bob.sync();
  await post(layla, 'صباح الخير يا آن', 'هل نلتقي غدا؟');
  await page.clickText('.entry', 'Bob');
  await page.see('Is there a map?', '.theirs');
  await page.enter('Write a message', 'I will be there.');
  await page.see('at their relay', '.own');
  await page.toList();
  await page.see('asks to write to you');
}

/** What no screen may have, as lines; to be run in the page. */
export const faultsOfLayout = `(() => {
  const lineOf = (each) => each.outerHTML.slice(0, 150);
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
  return [
    // Wider than the window, or than a box that does not scroll sideways by itself.
    ...all('html, body, main, .pane, .screen, .messages, .welcome')
      .filter((each) => each.scrollWidth > Math.min(each.clientWidth, innerWidth) + 1)
      .map((each) => 'scrolls: ' + each.tagName + '.' + each.className + ' ' + each.scrollWidth + ' > ' + each.clientWidth),
    ...all('button, input, textarea, select, h1, h2, summary, img, svg, video')
      .filter((each) => !each.closest('.hidden'))
      .filter((each) => each.getBoundingClientRect().left < -1 || each.getBoundingClientRect().right > innerWidth + 1)
      .map((each) => 'outside: ' + lineOf(each)),
    ...all('*')
      .filter((each) => getComputedStyle(each).animationName !== 'none' || getComputedStyle(each).transitionDuration !== '0s')
      .map((each) => 'moves: ' + lineOf(each)),
  ];
})()`;
