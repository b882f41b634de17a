/**
 * `npm run pictures`: makes the README's pictures of the messenger, light and dark, of the screens that a test
 * walks through. Fails if they are larger than 200 KB together.
 *
 * @example
 * npm run pictures
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const most = 204_800;
const root = join(import.meta.dirname, '..');
const made = mkdtempSync(join(tmpdir(), 'pictures-'));
try {
  execFileSync('npx', ['vitest', 'run', 'packages/web/test/screens.test.ts'], {
    ...{ cwd: root, stdio: 'inherit' },
    env: { ...process.env, MESSENGER_PICTURES: made },
  });
  const pictures = ['light', 'dark'].map((scheme) => ({
    from: join(made, `conversation-wide-${scheme}.png`),
    to: join(root, `docs/pictures/messenger-${scheme}.png`),
  }));
  const bytes = pictures.reduce((sum, { from }) => sum + statSync(from).size, 0);
  if (bytes > most) throw new Error(`pictures: ${bytes} bytes, more than ${most}`);
  for (const { from, to } of pictures) copyFileSync(from, to);
} finally {
  rmSync(made, { recursive: true });
}
