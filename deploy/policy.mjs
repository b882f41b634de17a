#!/usr/bin/env node
/**
 * An example of a program for `policy.command`: refuses posts that have one of the words of a file, one
 * a line, and lets an address bring at most three accounts in an hour. Copy and change it.
 *
 *   { "policy": { "command": ["/etc/posthouse/policy.mjs", "/etc/posthouse/words.txt"] } }
 *
 * One question a line on standard input, one answer a line on standard output, in any order:
 *
 *   {"id":7,"ask":"post","account":"N…","address":"192.0.2.1","channel":"…","post":{…}}
 *   {"id":7,"allow":true}
 *
 * What it writes to standard error is in the relay's log. It must end when its input ends.
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , path] = process.argv;
const lines = path === undefined ? [] : readFileSync(path, 'utf8').split(/\r?\n/);
const words = lines.map((line) => line.trim().toLowerCase()).filter(Boolean);

const hour = 3_600_000;
const accountsOfAddress = 3;
/** When addresses brought accounts; those of the last hour. */
let arrivals = [];

function mayCome(address) {
  const now = Date.now();
  arrivals = arrivals.filter(({ at }) => now - at < hour);
  if (arrivals.filter((one) => one.address === address).length >= accountsOfAddress) return false;
  arrivals.push({ address, at: now });
  return true;
}

/** Looks at what people read: IDs and signatures have any three letters now and then. */
function mayPost({ body }) {
  const text = (body?.text ?? '').toLowerCase();
  return !words.some((word) => text.includes(word));
}

function decide({ ask, address, post }) {
  if (ask === 'account') return mayCome(address);
  if (ask === 'post') return mayPost(post);
  return true;
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  const allow = decide(question);
  if (!allow) console.error(`refused: ${question.ask} of ${question.account}`);
  console.log(JSON.stringify({ id: question.id, allow }));
}
