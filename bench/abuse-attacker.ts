/** The attacker of `bench:abuse`: runs one row against loopback until its input ends. */
import { attacks } from './abuse/rows.ts';

const [name = '', target = ''] = process.argv.slice(2);
const attack = attacks[name];
if (attack === undefined) throw new Error(`there is no row ${name}`);
const parsed = JSON.parse(target);
if (new URL(parsed.https).hostname !== '127.0.0.1') throw new Error('only loopback is attacked');
const ended = new AbortController();
process.stdin.on('end', () => ended.abort()).resume();
await attack.run(parsed, ended.signal, () => console.log('begun'));
process.exit(0);
