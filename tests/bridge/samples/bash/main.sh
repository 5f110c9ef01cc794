#!/bin/bash
# Counts the letters of a name.
greet() {
  echo "${#1}"
}

echo "ää 你好 😀"; greet "Zoë"
