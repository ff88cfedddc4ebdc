// What the page keeps of one room, whether it is in view or not.

import { colour } from "./cursors.js";

const SHOWN = 500; // rows kept of a list

/** Adds a row to a list, and follows it where the list was at its end. */
export function row(list, className, ...parts) {
  const follow = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const li = document.createElement("li");
  li.className = className;
  for (const [name, text] of parts) {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    li.append(span);
  }
  list.append(li);
  while (list.children.length > SHOWN) list.firstChild.remove();
  if (follow) list.scrollTop = list.scrollHeight;
  return li;
}

export class Room {
  #subject;
  #shown = null;                       // {messages, members, count}: elements of the page, while in view
  #rows = document.createElement("ol"); // messages, while not
  #present = { members: [], count: 0 };
  #unread = 0;
  position = null;

  constructor(name, subject, chosen) {
    this.name = name;
    this.#subject = subject;
    this.tab = document.createElement("button");
    this.tab.type = "button";
    this.tab.textContent = name;
    this.tab.addEventListener("click", chosen);
  }

  show(messages, members, count) {
    this.#shown = { messages, members, count };
    messages.replaceChildren(...this.#rows.children);
    messages.scrollTop = messages.scrollHeight;
    this.#unread = 0;
    this.tab.textContent = this.name;
    this.tab.setAttribute("aria-current", "true");
    this.#showMembers();
  }

  hide() {
    this.#rows.replaceChildren(...this.#shown.messages.children);
    this.#shown = null;
    this.tab.removeAttribute("aria-current");
  }

  say(from, text, className) {
    if (!this.#shown) this.tab.textContent = `${this.name} (${++this.#unread})`;
    return row(this.#shown?.messages ?? this.#rows, className, ["from", from ?? "server"], ["text", text]);
  }

  present(change) {
    this.#present = change;
    this.#showMembers();
  }

  #showMembers() {
    if (!this.#shown) return;
    const { members, count } = this.#present;
    this.#shown.count.textContent = count || "";
    this.#shown.members.replaceChildren(...(members ?? []).map((who) => {
      const li = document.createElement("li");
      li.textContent = who === this.#subject ? `${who} (you)` : who;
      li.style.borderColor = colour(who);
      return li;
    }));
  }
}
