/**
 * What people do, in a page of each engine, under a policy that forbids compiled text and untrusted
 * HTML: real relay, real TLS, real browser. The other person is a client on Node.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { groupTexts } from '../groups/support.ts';
import { network, relayWithClients, texts } from '../support/relay-with-clients.ts';
import { type AppServer, bundleForPage, serveApp } from './support/app-server.ts';
import { engineNames, isMissing, openBrowser } from './support/engines.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });
let app: AppServer;
let open = '';
beforeAll(async () => {
  const folder = join(world.folder, 'relay');
  const registry = JSON.parse(readFileSync(join(folder, 'registry.json'), 'utf8'));
  const program = `
    import { followMessages, openAccount } from './test/web/support/app.ts';
    Object.assign(globalThis, { followMessages, openAccount });`;
  app = await serveApp(
    { page: await bundleForPage(program) },
    {
      tls: join(folder, 'tls'),
      relay: new URL(registry.relays[0].endpoint).origin,
    },
  );
  const given = JSON.stringify({ context: network.context, registry });
  open = `openAccount(${given}).then((account) => { globalThis.ann = account; return account.id; })`;
});
afterAll(() => app[Symbol.asyncDispose]());

describe.each(engineNames)('a page in %s', (name) => {
  test.skipIf(isMissing(name))(
    '03 §11 to 06 §10: account, contact, messages, group, channel; a reload loses nothing',
    async () => {
      const bob = await world.person();
      await using browser = await openBrowser(name);
      const { page } = browser;
      await page.open(app.url);
      const annId = await page.run<string>(open);

      await bob.contacts.join(await page.run('ann.contacts.invite().then(({ text }) => text)'));
      await page.run('ann.sync()');
      await page.run(`ann.contacts.approve('${bob.id}')`);
      await bob.sync();

      const sent = `ann.messages.send('${bob.id}', { text: 'hello Bob' })`;
      expect(await page.run(sent)).toMatchObject({ status: 'target_accepted' });
      await bob.sync();
      await page.run(`globalThis.following = followMessages(ann, 2), 0`);
      for (const text of ['hello Ann', 'and again']) await bob.messages.send(annId, { text });
      expect(await page.run('following')).toEqual(['hello Ann', 'and again']);

      const { id: groupId } = await page.run<{ id: string }>(`ann.groups.create({ name: 'Club' })`);
      const invitation = await page.run<{ text: string }>(`ann.groups.invite('${groupId}')`);
      await bob.groups.join(invitation.text);
      await page.run(`ann.groups.approve('${groupId}', ['${bob.id}'])`);
      await bob.sync();
      await bob.groups.send(groupId, { text: 'in the club' });
      await page.run(`ann.groups.send('${groupId}', { text: 'welcome' })`);

      const channel = await page.run<{ id: string; link: string }>(
        `ann.channels.create({ name: 'News', description: 'of the day' })`,
      );
      await bob.channels.follow(channel.link);
      await page.run(`ann.channels.send('${channel.id}', { text: 'one' })`);
      await page.run('ann.sync()');
      await bob.sync();
      expect(await texts(bob)).toEqual(['hello Bob', 'hello Ann', 'and again']);
      expect((await groupTexts(bob, groupId)).toSorted()).toEqual(['in the club', 'welcome']);
      expect(await bob.channels.listPosts(channel.id)).toMatchObject([{ from: annId }]);

      const shown = `Promise.all([ann.messages.list(), ann.groups.listMessages('${groupId}'),
        ann.channels.listPosts('${channel.id}'), ann.contacts.get('${bob.id}'), ann.status()])`;
      const before = await page.run<[object[], object[], object[]]>(shown);
      expect(before.slice(0, 3).map(({ length }: object[]) => length)).toEqual([3, 2, 1]);
      await expectNoComplaint();
      await page.open(app.url);
      expect(await page.run(open)).toBe(annId);
      expect(await page.run(shown)).toEqual(before);
      expect(await page.run(sent)).toMatchObject({ status: 'target_accepted' });
      await expectNoComplaint();

      async function expectNoComplaint() {
        const told = await page.run<string[]>('complaints');
        expect([...told, ...browser.complaints]).toEqual([]);
      }
    },
    120_000,
  );
});
